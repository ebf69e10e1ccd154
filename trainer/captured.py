"""What the target says of the training sequences, on disk: a run that trains on it need not run the target.

    features.bin     one sequence behind the other, a row a token: the tapped layers, and the last if it makes labels
    manifest.json    of what target, layers and sequences, in what number format, and how much of it is there

A size limit may leave the last sequences out; a run asks the target about those itself.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from trainer.batches import Batch, Rows
from trainer.errors import ConfigError
from trainer.ranks import Ranks
from trainer.target import Features

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """`done` of the first `count` sequences are there, in the order in which a capture takes them."""

    target: str
    layer_ids: list[int]
    has_final: bool
    sequences: str
    dtype: str
    hidden_size: int
    count: int
    done: int = 0

    @property
    def width(self) -> int:
        return self.hidden_size * (len(self.layer_ids) + self.has_final)

    @property
    def bytes_a_token(self) -> int:
        return int(self.width * getattr(torch, self.dtype).itemsize)

    def same_as(self, other: "Manifest") -> bool:
        return replace(self, done=0, count=0) == replace(other, done=0, count=0)


def read_manifest(folder: Path) -> Manifest | None:
    """None if there is none."""
    try:
        return Manifest(**json.loads((folder / _MANIFEST).read_text()))
    except (OSError, ValueError, TypeError):
        return None


class Captured:
    """The features in `folder`, of sequences of these lengths; `wanted` is what they must be of."""

    def __init__(self, folder: Path, lengths: Sequence[int], wanted: Manifest) -> None:
        found = read_manifest(folder)
        if found is None or found.done < found.count:
            raise ConfigError(f"features.path: {folder} holds no whole capture; let a run of kind capture make it")
        if not found.same_as(wanted):
            its, ours = asdict(found), asdict(wanted)
            key = next(key for key in its if its[key] != ours[key])
            if key in ("target", "sequences"):
                raise ConfigError(f"features.path: {folder} was not captured from the {key} of this run")
            values = f"{key} {its[key]} and this run has {ours[key]}"
            raise ConfigError(f"features.path: {folder} was captured with {values}")
        self.count, self._manifest = found.count, found
        self._begins = [0]
        for length in lengths[: found.count]:
            self._begins.append(self._begins[-1] + length)
        size = self._begins[-1] * found.width
        dtype = getattr(torch, found.dtype)
        try:
            rows = torch.from_file(str(folder / "features.bin"), size=size, dtype=dtype)
        except RuntimeError as e:
            raise ConfigError(
                f"features.path: {folder} is damaged ({e}); let a run of kind capture make it anew"
            ) from e
        self._rows = rows.view(-1, found.width)

    def fill(self, batch: Batch, rows: Rows) -> Batch:
        """`batch`, made of `rows` of sequences, with its features, if all of them are here."""
        if any(i >= self.count for row in rows for i in row):
            return batch
        whole = self._rows.new_zeros(*batch.tokens.shape, self._manifest.width)
        for at, row in enumerate(rows):
            begin = 0
            for i in row:
                own = self._rows[self._begins[i] : self._begins[i + 1]]
                whole[at, begin : begin + len(own)] = own
                begin += len(own)
        whole = whole.to(batch.tokens.device)
        if not self._manifest.has_final:
            return replace(batch, features=Features(whole))
        taps = self._manifest.hidden_size * len(self._manifest.layer_ids)
        return replace(batch, features=Features(whole[..., :taps], whole[..., taps:]))


class Writing:
    """A capture in the making: `write` puts a sequence's features where they belong, `commit` makes them last.

    Every process has one, over the same file.
    """

    def __init__(self, folder: Path, manifest: Manifest, begins: Sequence[int], ranks: Ranks) -> None:
        """Goes on where one of the same kind stopped. Raises OSError when the disk has no room for all of it."""
        self._folder, self._begins, self._ranks = folder, begins, ranks
        if ranks.is_first:
            self._make_room(manifest, begins[-1] * manifest.bytes_a_token)
        ranks.wait()
        self.manifest = read_manifest(folder) or manifest
        self._file = (folder / "features.bin").open("r+b")

    def _make_room(self, manifest: Manifest, size: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        found = read_manifest(self._folder)
        goes_on = found is not None and found == replace(manifest, done=found.done)
        if not goes_on:
            (self._folder / _MANIFEST).unlink(missing_ok=True)
        with (self._folder / "features.bin").open("ab" if goes_on else "wb") as file:
            # All of it at once: a disk that has no room says so now, and not after days.
            os.posix_fallocate(file.fileno(), 0, max(1, size))

    def write(self, i: int, features: Tensor) -> None:
        """`features` [tokens, width] of sequence `i`."""
        self._file.seek(self._begins[i] * self.manifest.bytes_a_token)
        self._file.write(features.contiguous().cpu().view(torch.uint8).numpy().tobytes())

    def commit(self, done: int) -> None:
        """`done` sequences are there, of all processes, and that is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._ranks.wait()
        if not self._ranks.is_first:
            return
        self.manifest = replace(self.manifest, done=done)
        draft = self._folder / f".{_MANIFEST}"
        draft.write_text(json.dumps(asdict(self.manifest), indent=2) + "\n")
        draft.replace(self._folder / _MANIFEST)

    def close(self) -> None:
        self._file.close()

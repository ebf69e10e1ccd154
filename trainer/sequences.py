"""Sequences on disk: tokenised once, memory-mapped ever after.

    tokens.bin      int32, all sequences one behind the other
    response.bin    one byte a token: whether it belongs to an answer
    index.safetensors    where each sequence ends, and its line of the data file
    held_out.jsonl  prompts to evaluate on, each with the tokens that its answer may have
    manifest.json   what they were made of

The folder is written under another name and renamed: one that can be seen is whole.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import overload

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.data import Sample, Talk
from trainer.errors import ConfigError

_MANIFEST = "manifest.json"
_FORMAT = 2


@dataclass(frozen=True)
class Manifest:
    """`key` says what the sequences were made of, `digest` what they are; `notes` what was left out.

    `longest_answer` is in tokens: no block of more has a slot supervised to its end.
    """

    key: str
    target: str
    digest: str
    num_sequences: int
    num_tokens: int
    num_response_tokens: int
    longest_answer: int
    notes: list[str]
    format: int = _FORMAT


class Sequences(Sequence[Sample]):
    """The training sequences in `folder`; `held_out` are prompts and budgets. ConfigError if they cannot be read."""

    def __init__(self, folder: Path, count: int | None = None) -> None:
        """Only the first `count` of them, if that is said."""
        found = manifest_of(folder)
        if found is None:
            raise ConfigError(f"data.path: {folder} holds no sequences; a run of kind prepare makes them")
        self.manifest = found
        try:
            index = load_file(folder / "index.safetensors")
            self._ends, self._lines = index["ends"][:count].tolist(), index["lines"][:count].tolist()
            size = self.manifest.num_tokens
            self._tokens = _mapped(folder / "tokens.bin", size, torch.int32)
            self._response = _mapped(folder / "response.bin", size, torch.bool)
            rows = [json.loads(line) for line in (folder / "held_out.jsonl").read_text().splitlines()]
        except Exception as e:  # The readers of safetensors and of mapped files have errors of their own.
            raise ConfigError(f"data.path: {folder} is damaged ({e}); remove it, and what made it makes it anew") from e
        self.lengths = [b - a for a, b in zip([0, *self._ends], self._ends, strict=False)]
        self.held_out: list[tuple[list[int], int]] = [(row["prompt"], row["budget"]) for row in rows]

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, i: int) -> Sample: ...
    @overload
    def __getitem__(self, i: slice) -> list[Sample]: ...
    def __getitem__(self, i: int | slice) -> Sample | list[Sample]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        at = slice(self._ends[i] - self.lengths[i], self._ends[i])
        return Sample(self._tokens[at], self._response[at], self._lines[i])


class Shelf:
    """Takes sequences one by one into a folder that appears whole with `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._draft = folder, folder.with_name(f".{folder.name}")
        shutil.rmtree(self._draft, ignore_errors=True)
        self._draft.mkdir(parents=True)
        self._tokens = (self._draft / "tokens.bin").open("wb")
        self._response = (self._draft / "response.bin").open("wb")
        self._held_out = (self._draft / "held_out.jsonl").open("w")
        self._digest = hashlib.sha256()
        self._ends: list[int] = []
        self._lines: list[int] = []
        self._num_response_tokens = self._num_too_long = self._num_too_short = self._longest_answer = 0

    def add(self, talks: Iterable[Talk]) -> None:
        """What became of them: sequences to train on, and prompts to evaluate on."""
        for talk in talks:
            self._num_too_long += talk.is_too_long
            if talk.split == "eval" and talk.prompt is not None:
                line = json.dumps({"prompt": talk.prompt, "budget": talk.budget}, separators=(",", ":"))
                self._held_out.write(line + "\n")
                self._digest.update(line.encode())
            for sample in talk.samples() if talk.split == "train" else []:
                self._add(sample)

    def _add(self, sample: Sample) -> None:
        # One token is the anchor, the next is the least that it can be asked for.
        if not (sample.response[1:] & sample.response[:-1]).any():
            self._num_too_short += 1
            return
        tokens, response = sample.tokens.numpy().tobytes(), sample.response.numpy().tobytes()
        self._tokens.write(tokens)
        self._response.write(response)
        self._digest.update(tokens + response)
        self._num_response_tokens += int(sample.response.sum())
        self._longest_answer = max(self._longest_answer, sample.longest_answer)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(sample))
        self._lines.append(sample.line)

    def close(self, key: str, target: str, max_seq_len: int) -> None:
        """Raises OSError when the disk is full; nothing is seen then."""
        for file in (self._tokens, self._response, self._held_out):
            file.close()
        lists = {"ends": self._ends, "lines": self._lines}
        index = {name: torch.tensor(numbers, dtype=torch.int64) for name, numbers in lists.items()}
        save_file(index, self._draft / "index.safetensors")
        notes = []
        if self._num_too_long:
            notes.append(f"rows left out: {self._num_too_long} (prompt fills data.max_seq_len = {max_seq_len})")
        if self._num_too_short:
            notes.append(f"rows left out: {self._num_too_short} (response of fewer than two tokens)")
        digest, size = self._digest.hexdigest(), self._ends[-1] if self._ends else 0
        counts = len(self._ends), size, self._num_response_tokens, self._longest_answer
        manifest = Manifest(key, target, digest, *counts, notes)
        (self._draft / _MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n")
        for place in self._draft.iterdir():
            with place.open("rb") as written:
                os.fsync(written.fileno())
        shutil.rmtree(self._folder, ignore_errors=True)
        self._draft.rename(self._folder)


def _mapped(path: Path, size: int, dtype: torch.dtype) -> Tensor:
    # What is empty cannot be mapped.
    return torch.from_file(str(path), size=size, dtype=dtype) if size else torch.zeros(0, dtype=dtype)


def manifest_of(folder: Path) -> Manifest | None:
    """None if there is none of this version."""
    try:
        told = json.loads((folder / _MANIFEST).read_text())
        return Manifest(**told) if told.get("format") == _FORMAT else None
    except (OSError, ValueError, TypeError):
        return None

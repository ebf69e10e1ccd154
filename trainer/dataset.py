"""The data of a run, complete: training sequences and held-out prompts with what the target makes of them.

`data.path` is either rows, which become sequences once, in `sequences/` of the run's folder, or such a folder of a run
of kind prepare.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from trainer.config import Config
from trainer.data import read_talks
from trainer.errors import ConfigError
from trainer.evaluate import HeldOut
from trainer.pretrained import fingerprint, folder
from trainer.ranks import Ranks
from trainer.regenerate import Asked, InProcess, Kept, Writer, answer
from trainer.sequences import Sequences, Shelf, manifest_of
from trainer.target import Target

# Rows whose answers are written together: many, so that those of like length meet; not all, for the memory.
_ROWS_AT_A_TIME = 16384
# What of a config decides how rows become sequences.
_DECIDING = (
    "data.num_train", "data.num_eval", "data.max_new_tokens", "data.max_seq_len", "data.regenerate", "data.thinking",
    "data.server", "data.server_model", "dtype",
)  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True)
class Dataset:
    """`notes` says, a sentence each, what was left out."""

    train: Sequences
    held_out: list[HeldOut]
    digest: str
    notes: list[str]


def training_sequences(config: Config, target: Target, check_stop: Callable[[], None], ranks: Ranks) -> Sequences:
    """Reads the rows, lets the target write the answers that are missing, and drops what cannot be trained on."""
    path, run_dir = rows_path(config), Path(config["run_dir"])
    if not path.is_dir():
        with InProcess(target, config["data.generate_batch"], ranks, check_stop) as writer:
            if ranks.is_first:
                build(config, target.tokenizer, writer, run_dir / "sequences", check_stop)
        ranks.wait()
    sequences = Sequences(path, config["data.num_train"]) if path.is_dir() else Sequences(run_dir / "sequences")
    if sequences.manifest.target != target.fingerprint():
        raise ConfigError(f"data.path: the sequences in {path} were made for another target than {target.path}")
    if config["kind"] != "evaluate":
        _check_answers(sequences, path, config["block_size"])
    return sequences


def _check_answers(sequences: Sequences, path: Path, block_size: int) -> None:
    """ConfigError if nothing would teach the slots, or the last ones, of a block."""
    if not len(sequences):
        raise ConfigError(f"data.path: no response in {path} has two tokens, so there is nothing to train on")
    longest = sequences.manifest.longest_answer
    if block_size > longest:
        raise ConfigError(
            f"block_size: {block_size} is more than the {longest} tokens of the longest response, so the last slots "
            f"would learn nothing; lower it to {longest} at most, or give longer responses"
        )


def prepare(config: Config, target: Target, check_stop: Callable[[], None], ranks: Ranks) -> Dataset:
    """The training sequences, and the held-out prompts with what the target writes to them."""
    sequences = training_sequences(config, target, check_stop, ranks)
    asked = sequences.held_out[: config["data.num_eval"]]
    if config["kind"] == "evaluate" and not asked:
        raise ConfigError(f'data.path: {rows_path(config)} holds no row with "split": "eval" to evaluate on')
    with InProcess(target, config["data.generate_batch"], ranks, check_stop, config["block_size"]) as writer:
        if ranks.is_first:
            _hold_out(config, target, asked, writer, check_stop)
    ranks.wait()
    held_out = _hold_out(config, target, asked, writer, check_stop)
    notes = list(sequences.manifest.notes)
    if not held_out:
        notes.append('no evaluation: rows with "split": "eval" are not there, or data.num_eval is 0')
    written = json.dumps([row.response for row in held_out])
    digest = hashlib.sha256(f"{sequences.manifest.digest} {written}".encode()).hexdigest()
    return Dataset(sequences, held_out, digest, notes)


def build(
    config: Config,
    tokenizer: Any,
    writer: Writer,
    place: Path,
    check_stop: Callable[[], None],
    tell: Callable[[list[int]], None] = lambda _: None,
) -> None:
    """Makes the sequences in `place` out of the rows, unless they are there already."""
    path = rows_path(config)
    key = _key(config, path)
    made = manifest_of(place)
    if made is not None and made.key == key:
        return
    shelf = Shelf(place)
    num_train = 0
    answers_of = f"{fingerprint(folder(config))} {config['dtype']} {config['data.server_model']}"
    with Kept(place.parent / "responses.jsonl", answers_of) as kept:
        for talks in some(read_talks(path, tokenizer, config), _ROWS_AT_A_TIME):
            num_train += sum(talk.split == "train" and not talk.is_too_long for talk in talks)
            answer(talks, writer, kept, check_stop, tell)
            shelf.add(talks)
    if not num_train and config["kind"] != "evaluate":
        raise ConfigError(f"{path}: holds no row to train on; every row needs a prompt or messages")
    shelf.close(key, fingerprint(folder(config)), config["data.max_seq_len"])


def rows_path(config: Config) -> Path:
    """Where the rows are: as the config says, else beside the target."""
    return Path(config["data.path"]) if config["data.path"] else folder(config) / "prompts.jsonl"


def some_prompts(config: Config, target: Target, count: int) -> list[list[int]]:
    """The first prompts of the data."""
    path = rows_path(config)
    if path.is_dir():
        return [s.tokens[: int(s.response.int().argmax())].tolist() for s in Sequences(path)[:count]]
    talks = islice(read_talks(path, target.tokenizer, {**config, "data.regenerate": "all", "data.num_eval": 0}), count)
    return [talk.prompt for talk in talks if talk.prompt is not None]


def _hold_out(
    config: Config, target: Target, asked: list[Asked], writer: Writer, check_stop: Callable[[], None]
) -> list[HeldOut]:
    """The target's answers to the held-out prompts, with tokens beyond: lookup decoding is judged by them.

    Those that are not kept yet are asked for.
    """
    beyond: int = config["block_size"]
    text = f"{target.fingerprint()} {target.model.dtype} {beyond} {json.dumps(asked)}"
    with Kept(Path(config["run_dir"]) / "held_out.jsonl", hashlib.sha256(text.encode()).hexdigest()) as kept:
        new = [i for i in range(len(asked)) if str(i) not in kept]
        for answers in writer.write([asked[i] for i in new]):
            kept.add({str(new[i]): tokens for i, tokens in answers})
            print(f"held-out responses: {len(kept)} of {len(asked)} written by the target", flush=True)
            check_stop()
        written = [kept[str(i)] for i in range(len(asked))]
    return [HeldOut(p, w[:-beyond], w[-beyond:]) for (p, _), w in zip(asked, written, strict=True)]


def _key(config: Config, path: Path) -> str:
    """Changes with anything that the sequences hang on."""
    deciding = [config["kind"] == "evaluate", *(config[name] for name in _DECIDING)]
    digest = hashlib.sha256(json.dumps(deciding).encode())
    digest.update(fingerprint(folder(config)).encode())
    try:
        with path.open("rb") as rows:
            while block := rows.read(2**20):
                digest.update(block)
    except OSError as e:
        raise ConfigError(f"data.path: {path} cannot be read ({e})") from e
    return digest.hexdigest()


def some(items: Iterator[T], count: int) -> Iterator[list[T]]:
    """`count` at a time, and at last what is left."""
    while taken := list(islice(items, count)):
        yield taken

"""The data of a run, complete: training sequences and held-out prompts with what the target makes of them."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.config import Config
from trainer.data import Sample, read_rows
from trainer.errors import ConfigError
from trainer.evaluate import HeldOut
from trainer.ranks import Ranks
from trainer.regenerate import responses
from trainer.target import Target


@dataclass(frozen=True)
class Dataset:
    """`notes` says, a sentence each, what was left out."""

    train: list[Sample]
    held_out: list[HeldOut]
    digest: str
    notes: list[str]


def prepare(config: Config, target: Target, check_stop: Callable[[], None], ranks: Ranks) -> Dataset:
    """Reads the rows, lets the target write the responses that are missing, and drops what cannot be trained on."""
    path = rows_path(config, target)
    rows, num_too_long = read_rows(path, target.tokenizer, config)
    beyond: int = config["block_size"]
    kept_in = Path(config["run_dir"]) / "responses.jsonl"
    if ranks.is_first:
        written = responses(target, rows, config, kept_in, beyond, check_stop)
    ranks.wait()
    if not ranks.is_first:
        written = responses(target, rows, config, kept_in, beyond, check_stop)
    samples, held_out = [], []
    for row, response in zip(rows, written, strict=True):
        if row.split == "eval":
            held_out.append(HeldOut(row.prompt, response[:-beyond], response[-beyond:]))
        else:
            samples.append(Sample(row.prompt + response, len(row.prompt), row.line))
    # One token is the anchor, the next is the least that it can be asked for.
    kept = [sample for sample in samples if len(sample.tokens) - sample.start >= 2]
    if not kept and config["kind"] != "evaluate":
        raise ConfigError(f"data.path: no response in {path} has two tokens, so there is nothing to train on")
    notes = []
    if num_too_long:
        notes.append(f"rows left out: {num_too_long} (prompt fills data.max_seq_len = {config['data.max_seq_len']})")
    if len(kept) < len(samples):
        notes.append(f"rows left out: {len(samples) - len(kept)} (response of fewer than two tokens)")
    if not held_out:
        notes.append('no evaluation: rows with "split": "eval" are not there, or data.num_eval is 0')
    sequences = [s.tokens for s in kept] + [h.prompt + h.response for h in held_out]
    digest = hashlib.sha256(json.dumps(sequences).encode()).hexdigest()
    return Dataset(kept, held_out, digest, notes)


def rows_path(config: Config, target: Target) -> Path:
    """Where the rows are: as the config says, else beside the target."""
    return Path(config["data.path"]) if config["data.path"] else target.path / "prompts.jsonl"

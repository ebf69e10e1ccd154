"""`checkpoints/step-<n>/`: what a run needs to go on, and what a server needs to use the drafter.

    model.safetensors, config.json      the drafter, in z-lab's format
    state.pt                            optimizer and counters, read with weights_only=True
    manifest.json                       sha256 of the others

A checkpoint is written under another name, flushed to the disk and renamed: one that can be seen is whole, and one
whose hashes do not fit was damaged later and is passed over. Random numbers need no state; they follow from seed and
step.
"""

import hashlib
import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from trainer.config import Config, flatten
from trainer.errors import ConfigError, RunError
from trainer.model import Drafter

_MANIFEST = "manifest.json"
# What may change from one attempt to the next without a word.
_FREE = ("run_dir", "run_id", "threads", "processes")
_FILES = ("model.safetensors", "config.json", "state.pt")
_OF_LAYERS = ("intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias")


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint: its files' bytes, hashes verified."""

    name: str
    files: dict[str, bytes]

    def draft_config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.files["config.json"])
        return config

    def weights(self) -> dict[str, torch.Tensor]:
        weights: dict[str, torch.Tensor] = load(self.files["model.safetensors"])
        return weights

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = torch.load(io.BytesIO(self.files["state.pt"]), weights_only=True)
        return state


@dataclass(frozen=True)
class Saved:
    """What is to be saved after optimizer step `step`."""

    step: int
    drafter: Drafter
    draft_config: dict[str, Any]
    state: dict[str, Any]


def write(folder: Path, saved: Saved, keep: int, best: int = 0) -> Path:
    """Saves a step and leaves only the newest `keep` and that of step `best`; returns the checkpoint's folder.

    Raises OSError if it cannot; what was there is untouched then.
    """
    buffer = io.BytesIO()
    torch.save(saved.state, buffer)
    weights = {name: p.detach().cpu().contiguous() for name, p in saved.drafter.state_dict().items()}
    files = {
        "model.safetensors": save(weights, metadata={"format": "pt"}),
        "config.json": json.dumps(saved.draft_config, indent=2).encode(),
        "state.pt": buffer.getvalue(),
    }
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    files[_MANIFEST] = json.dumps({"step": saved.step, "sha256": sums}, indent=2).encode()
    folder.mkdir(exist_ok=True)
    for stale in folder.glob(".step-*"):
        shutil.rmtree(stale)
    draft, final = folder / f".step-{saved.step}", folder / f"step-{saved.step}"
    draft.mkdir()
    for name, data in files.items():
        _write_file(draft / name, data)
    _sync(draft)
    if final.exists():
        # Out of the way first: removing it lasts, and a run that is killed then would have neither.
        final.rename(folder / f".step-{saved.step}.old")
    draft.rename(final)
    _sync(folder)
    shutil.rmtree(folder / f".step-{saved.step}.old", ignore_errors=True)
    # Those of later steps are damaged, and were passed over.
    until_now = [place for place in newest_first(folder) if _step(place) <= saved.step]
    for old in until_now[keep:]:
        if old.name != f"step-{best}":
            shutil.rmtree(old)
    return final


def find(folder: Path, draft_config: dict[str, Any]) -> tuple[Checkpoint | None, list[str]]:
    """The newest whole checkpoint, and one sentence for each newer one that is not.

    Raises RunError if there are checkpoints but none is whole, ConfigError if the one found is of another drafter.
    """
    found, passed_over = newest_whole(folder)
    if found:
        _check_fits(found.draft_config(), draft_config)
    elif passed_over:
        raise RunError(f"{folder}: no checkpoint is whole; remove the folder to begin anew ({'; '.join(passed_over)})")
    return found, passed_over


def newest_whole(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """`find`, whatever drafter it is of."""
    passed_over: list[str] = []
    for place in newest_first(folder):
        try:
            return _read(place), passed_over
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            passed_over.append(f"{place.name} is damaged and was passed over ({e})")
    return None, passed_over


def changes(state: dict[str, Any], config: Config, data_hash: str) -> list[str]:
    """What is not as it was when `state` was saved, a sentence each: the run goes on, but not as if never stopped."""
    notes = []
    saved = flatten(state["config"])
    for key, value in config.items():
        if key not in _FREE and saved.get(key) != value:
            notes.append(f"{key} was {saved.get(key)} before the resume and is {value} now")
    if state["data_hash"] != data_hash:
        notes.append("the data is not what it was before the resume")
    return notes


def _check_fits(saved: dict[str, Any], now: dict[str, Any]) -> None:
    """ConfigError if a drafter saved as `saved` cannot go on as `now`; both are draft configs."""
    for group, keys in (
        ("dflash_config", ("mask_token_id", "block_size", "target_layer_ids")),
        (None, ("num_hidden_layers", "hidden_size", "vocab_size", "num_target_layers", "rope_theta", *_OF_LAYERS)),
    ):
        old, new = (config[group] if group else config for config in (saved, now))
        for key in keys:
            if old[key] != new[key]:
                raise ConfigError(
                    f"{key}: the run's checkpoint has {old[key]} and the config says {new[key]}; "
                    "resume with the old value, or start a new run"
                )


def _read(place: Path) -> Checkpoint:
    manifest = json.loads((place / _MANIFEST).read_bytes())
    files = {}
    for name in _FILES:
        files[name] = (place / name).read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != manifest["sha256"][name]:
            raise ValueError(f"{name} is not what was written")
    return Checkpoint(place.name, files)


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints in `folder`, whole or not."""
    places = [place for place in folder.glob("step-*") if place.name[5:].isdecimal()]
    return sorted(places, key=_step, reverse=True)


def _step(place: Path) -> int:
    return int(place.name.removeprefix("step-"))


def _write_file(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Makes the names in `folder` last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

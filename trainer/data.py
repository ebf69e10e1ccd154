"""Rows of a JSONL file -> token sequences, some of them still without a response.

Owns what a row may look like and where its response begins. Responses that the file does not bring are written by the
target, in `regenerate`; batches are cut in `batches`.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.config import Config
from trainer.errors import ConfigError


@dataclass(frozen=True)
class Row:
    """One row of the data. `response` is None where the target is to write one, of at most `budget` tokens."""

    split: str
    prompt: list[int]
    response: list[int] | None
    budget: int
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Sample:
    """A prompt and its response as one sequence; the response begins at `start`. `line` is the data file's."""

    tokens: list[int]
    start: int
    line: int = 0


def read_rows(path: Path, tokenizer: Any, config: Config) -> tuple[list[Row], int]:
    """The rows of `path`, and how many were left out because their prompt fills the longest sequence.

    Raises ConfigError naming file and line.
    """
    limits = {"train": config["data.num_train"], "eval": config["data.num_eval"]}
    if config["kind"] == "evaluate":
        limits["train"] = 0
    rows: list[Row] = []
    taken = {"train": 0, "eval": 0}
    num_too_long = 0
    for place, raw in _objects(path):
        split = raw.get("split", "train")
        if split not in limits:
            raise ConfigError(f'{place}: split {split!r} is not allowed: "train" or "eval"')
        if limits[split] is not None and taken[split] >= limits[split]:
            continue
        row = _row(place, raw, split, tokenizer, config)
        if row is None:
            num_too_long += 1
            continue
        taken[split] += 1
        rows.append(row)
    wanted, purpose = ("eval", "evaluate") if config["kind"] == "evaluate" else ("train", "train")
    if not taken[wanted]:
        raise ConfigError(f"{path}: holds no row to {purpose} on; every row needs a prompt or messages")
    return rows, num_too_long


def digest(rows: list[Row]) -> str:
    """Changes with anything that the rows say."""
    parts = ((row.split, row.prompt, row.response, row.budget) for row in rows)
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                place = f"{path}:{number}"
                if not line.strip():
                    continue
                try:
                    raw = json.loads(line)
                except ValueError as e:
                    raise ConfigError(f"{place}: is not JSON ({e})") from e
                if not isinstance(raw, dict):
                    raise ConfigError(f"{place}: must be an object with a prompt or messages")
                yield place, raw
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"data.path: {path} cannot be read ({e})") from e


def _row(place: str, raw: dict[str, Any], split: str, tokenizer: Any, config: Config) -> Row | None:
    longest = config["data.max_seq_len"]
    prompt, response = _tokens(place, raw, tokenizer)
    if len(prompt) > longest - 2:
        return None
    room = longest - len(prompt)
    wanted = raw.get("max_new_tokens", config["data.max_new_tokens"])
    if not isinstance(wanted, int) or wanted < 1:
        raise ConfigError(f"{place}: max_new_tokens {wanted!r} is not allowed: an integer of at least 1")
    wanted = min(wanted, config["data.max_new_tokens"], room)
    line = int(place.rpartition(":")[2])
    return Row(split, prompt, None if response is None else response[:room], wanted, line)


def _tokens(place: str, raw: dict[str, Any], tokenizer: Any) -> tuple[list[int], list[int] | None]:
    """The prompt, and the response if the row brings one."""
    prompt, messages, response = raw.get("prompt"), raw.get("messages"), raw.get("response")
    if response is not None and not isinstance(response, str):
        raise ConfigError(f"{place}: response must be text")
    if isinstance(prompt, str) and messages is None:
        ids = list(tokenizer(prompt)["input_ids"])
        if not ids:
            raise ConfigError(f"{place}: the prompt is empty")
        return ids, None if response is None else list(tokenizer(response, add_special_tokens=False)["input_ids"])
    if not isinstance(messages, list) or not messages or prompt is not None:
        raise ConfigError(f"{place}: needs either a prompt (text) or messages (a list)")
    if response is not None:
        messages = [*messages, {"role": "assistant", "content": response}]
    return _chat(place, messages, tokenizer)


def _chat(place: str, messages: list[Any], tokenizer: Any) -> tuple[list[int], list[int] | None]:
    if not tokenizer.chat_template:
        raise ConfigError(f"{place}: has messages, but the target's tokenizer has no chat template; give a prompt")
    answered = isinstance(messages[-1], dict) and messages[-1].get("role") == "assistant"
    asked = messages[:-1] if answered else messages
    try:
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=False)
        whole = tokenizer.apply_chat_template(messages, return_dict=False) if answered else None
    except Exception as e:  # A template is a program of the model's maker, and may raise anything.
        raise ConfigError(f"{place}: the chat template does not take these messages ({e})") from e
    if whole is None:
        return list(prompt), None
    if whole[: len(prompt)] != prompt:
        raise ConfigError(
            f"{place}: the chat template rewrites the prompt once it is answered, so the answer cannot be told apart"
        )
    return list(prompt), list(whole[len(prompt) :])

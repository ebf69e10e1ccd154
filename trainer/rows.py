"""Lines of a JSONL file -> rows: a bare prompt, or the messages of a chat with any number of answers.

Owns what a line may look like; every error names file and line. What becomes of a row is for `data`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.config import Config
from trainer.errors import ConfigError

Message = dict[str, Any]


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with its place, `file:line`."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    place = f"{path}:{number}"
                    yield place, _object(place, line)
    except OSError as e:
        raise ConfigError(f"data.path: {path} cannot be read ({e})") from e


def _object(place: str, line: bytes) -> dict[str, Any]:
    try:
        # Some editors put a mark before the first line.
        raw = json.loads(line.decode("utf-8-sig"))
        if b"\\u" in line:
            # JSON may spell half a character, which is no text.
            json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeError as e:
        raise ConfigError(f"{place}: is not UTF-8 text ({e})") from e
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{place}: is not JSON ({e})") from e
    if not isinstance(raw, dict):
        raise ConfigError(f"{place}: must be an object with a prompt or messages")
    return raw


def parts(place: str, raw: dict[str, Any], tokenizer: Any, anew: bool) -> tuple[list[int] | None, list[Message]]:
    """The tokens of a bare prompt, if it is one, and the messages; with `anew` no answer is taken from the row."""
    prompt, messages, response = raw.get("prompt"), raw.get("messages"), raw.get("response")
    if response is not None and not isinstance(response, str):
        raise ConfigError(f"{place}: response must be text")
    if isinstance(prompt, str) and messages is None:
        ids = list(tokenizer(prompt)["input_ids"])
        if not ids:
            raise ConfigError(f"{place}: the prompt is empty")
        given = None if response is None or anew else list(tokenizer(response, add_special_tokens=False)["input_ids"])
        return ids, [{"role": "assistant", "content": given}]
    if not isinstance(messages, list) or not messages or prompt is not None:
        raise ConfigError(f"{place}: needs either a prompt (text) or messages (a list)")
    if not tokenizer.chat_template:
        raise ConfigError(f"{place}: has messages, but the target's tokenizer has no chat template; give a prompt")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise ConfigError(f"{place}: every message must be an object with a role")
    for message in messages:
        # An answer may be left to the target. What else is no text, templates print as Python does, or leave out.
        if not isinstance(message.setdefault("content", None), str | None if message["role"] == "assistant" else str):
            raise ConfigError(f"{place}: the content of a message with role {message['role']!r} must be text")
    if response is not None or messages[-1]["role"] != "assistant":
        messages = [*messages, {"role": "assistant", "content": response}]
    if anew:
        messages = [{**m, "content": None} if m["role"] == "assistant" else m for m in messages]
    return None, list(messages)


def num_wanted(path: Path, config: Config) -> int:
    """How many answers the training rows of `path` want at most, without looking at what they say."""
    anew, count, left = config["data.regenerate"] == "all", 0, config["data.num_train"]
    for _, raw in read_rows(path):
        if raw.get("split", "train") != "train" or left == 0:
            continue
        left = None if left is None else left - 1
        messages = raw["messages"] if isinstance(raw.get("messages"), list) else []
        given = [m for m in messages if isinstance(m, dict) and m.get("role") == "assistant"]
        is_open = raw.get("response") is None and not (given and messages[-1] is given[-1])
        missing = sum(m.get("content") is None for m in given) + is_open
        count += missing if not anew else max(1, len(given) + (is_open or raw.get("response") is not None))
    return count

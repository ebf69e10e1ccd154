"""Responses in the target's own words: what a drafter has to guess is what the target would write.

They are kept in `responses.jsonl` of the run's folder, as they come, so that a run which is stopped while they are
being written goes on from there, and one that is resumed later does not write them again.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from trainer.config import Config
from trainer.data import Row, digest
from trainer.decode import greedy
from trainer.target import Target

_SECONDS_BETWEEN_LINES = 5.0


def responses(
    target: Target, rows: list[Row], config: Config, place: Path, tail: int, check_stop: Callable[[], None]
) -> list[list[int]]:
    """One response a row, in the rows' order: the file's own, else the target's, read from `place` where it is known.

    Responses of evaluation rows come with `tail` tokens more: lookup decoding is judged by them beyond the end.
    """
    known = _read(place, _key(target, rows, tail))
    wanted = [i for i, row in enumerate(rows) if row.response is None or row.split == "eval"]
    todo = [i for i in wanted if i not in known]
    # Alike in length, so that a batch ends together; longest first, so that memory runs out at once or never.
    todo.sort(key=lambda i: (rows[i].split, -rows[i].budget, -len(rows[i].prompt)))
    with place.open("a", encoding="utf-8") as file:
        _write(target, rows, todo, known, config["data.generate_batch"], tail, file, check_stop)
    return [known[i] if i in known else rows[i].response or [] for i in range(len(rows))]


def _write(
    target: Target,
    rows: list[Row],
    todo: list[int],
    known: dict[int, list[int]],
    batch_size: int,
    tail: int,
    file: IO[str],
    check_stop: Callable[[], None],
) -> None:
    began = said = time.monotonic()
    done = 0
    while done < len(todo):
        check_stop()
        split = rows[todo[done]].split
        batch = [i for i in todo[done : done + batch_size] if rows[i].split == split]
        written = greedy(
            target, [rows[i].prompt for i in batch], [rows[i].budget for i in batch], tail if split == "eval" else 0
        )
        for i, decoded in zip(batch, written, strict=True):
            known[i] = decoded.tokens
            file.write(json.dumps({"row": i, "response": decoded.tokens}, separators=(",", ":")) + "\n")
        file.flush()
        os.fsync(file.fileno())
        done += len(batch)
        now = time.monotonic()
        if done == len(todo) or now - said > _SECONDS_BETWEEN_LINES:
            said = now
            print(f"responses: {done} of {len(todo)} written by the target, {now - began:.0f} s", flush=True)


def _key(target: Target, rows: list[Row], tail: int) -> str:
    text = f"{target.fingerprint()} {target.model.dtype} {tail} {digest(rows)}"
    return hashlib.sha256(text.encode()).hexdigest()


def _read(place: Path, key: str) -> dict[int, list[int]]:
    """What `place` holds under `key`; begins the file anew if it is another's. A torn last line is cut off."""
    known: dict[int, list[int]] = {}
    head = json.dumps({"key": key}) + "\n"
    whole = head.encode()
    if place.exists() and (data := place.read_bytes()).startswith(whole):
        for line in data[len(whole) : data.rfind(b"\n") + 1].splitlines():
            record = json.loads(line)
            known[record["row"]] = record["response"]
        with place.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
    else:
        place.write_bytes(whole)
    return known

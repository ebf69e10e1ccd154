"""Answers in the target's own words: what a drafter has to guess is what the target would write.

They are kept in a file as they come, so that a run which is stopped while they are being written goes on from there,
and one that is resumed later does not write them again.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from trainer.data import Talk
from trainer.decode import greedy
from trainer.errors import Interrupted, PeerLostError, RunError
from trainer.ranks import Ranks
from trainer.target import Target

_SECONDS_BETWEEN_LINES = 5.0

# A prompt, and how many tokens its answer may have.
Asked = tuple[list[int], int]
# (place in what was asked, the answer)
Answered = tuple[int, list[int]]


class Writer(Protocol):
    """Whoever answers: the target in the processes of the run, or a server."""

    def write(self, asked: Sequence[Asked]) -> Iterator[list[Answered]]:
        """All answers, some at a time, in any order; none while they let wait, so that a stop is seen."""


class InProcess:
    """The target, greedily, in batches; `tail` tokens more than asked for, past an end too.

    A context: the first process of several gets a writer there, who hands out a batch to each; the others come out of
    it when that one does, and have written theirs. `check_stop`, which may raise
    Interrupted, is called between passes.
    """

    def __init__(
        self, target: Target, batch_size: int, ranks: Ranks, check_stop: Callable[[], None], tail: int = 0
    ) -> None:
        self._target, self._batch_size, self._ranks, self._tail = target, batch_size, ranks, tail
        self._check_stop = check_stop

    def __enter__(self) -> "InProcess":
        while not self._ranks.is_first and (batches := self._heard(None)) is not None:
            own = batches[self._ranks.index] if self._ranks.index < len(batches) else []
            self._heard(self._answers(own))
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._ranks.is_first:
            told = error is None or isinstance(error, RunError)
            self._ranks.gather(error if told else PeerLostError(PeerLostError.sentence))

    def _heard(self, said: list[list[int]] | None) -> list[Any] | None:
        """What the first says meanwhile; None is its end. Raises what it raised."""
        heard = self._ranks.gather(said)[0]
        if isinstance(heard, RunError):
            raise heard
        return cast("list[Any] | None", heard)

    def write(self, asked: Sequence[Asked]) -> Iterator[list[Answered]]:
        # Alike in length, so that a batch ends together; longest first, so that memory runs out at once or never.
        order = sorted(range(len(asked)), key=lambda i: (-asked[i][1], -len(asked[i][0])))
        batches = [order[i : i + self._batch_size] for i in range(0, len(order), self._batch_size)]
        for first in range(0, len(batches), self._ranks.count):
            some = batches[first : first + self._ranks.count]
            handed = [[asked[i] for i in batch] for batch in some]
            self._ranks.gather(handed)
            written = self._ranks.gather(self._answers(handed[0]))
            whole = [(batch, own) for batch, own in zip(some, written, strict=False) if own is not None]
            yield [answer for batch, own in whole for answer in zip(batch, own, strict=True)]
            if None in written:
                raise Interrupted(Interrupted.sentence)

    def _answers(self, asked: Sequence[Asked]) -> list[list[int]] | None:
        """None if a stop left them unwritten: said to all before it is raised, as they wait for each other."""
        if not asked:
            return []
        prompts, budgets = [prompt for prompt, _ in asked], [budget for _, budget in asked]
        try:
            written = greedy(self._target, prompts, budgets, self._tail, self._check_stop)
        except Interrupted:
            return None
        return [decoded.tokens for decoded in written]


class Kept:
    """The file of answers: one a line, each under its name. Only where they lie is held in memory."""

    def __init__(self, place: Path, key: str) -> None:
        """Sets aside what was written under another key, which finds it there. A torn last line is cut off."""
        head = (json.dumps({"key": key}) + "\n").encode()
        self._places: dict[str, int] = {}
        _set_aside(place, head)
        self._file = place.open("a+b")
        self._file.seek(0)
        if self._file.readline() != head:
            self._file.truncate(0)
            self._file.write(head)
            self._file.flush()
            return
        offset = len(head)
        for line in self._file:
            if line.endswith(b"\n"):
                if name := _name_in(line):
                    self._places[name] = offset
                offset += len(line)
        self._file.truncate(offset)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> list[int]:
        self._file.seek(self._places[name])
        answer: list[int] = json.loads(self._file.readline())["answer"]
        return answer

    def add(self, answers: dict[str, list[int]]) -> None:
        """Returns once they are on the disk."""
        self._file.seek(0, os.SEEK_END)
        for name, answer in answers.items():
            self._places[name] = self._file.tell()
            self._file.write(json.dumps({"of": name, "answer": answer}, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> "Kept":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _set_aside(place: Path, head: bytes) -> None:
    """What lies at `place` under another head: it may be days of answers. What was set aside under this one is back."""
    with suppress(FileNotFoundError):
        with place.open("rb") as file:
            first = file.readline()
        if first not in (b"", head):
            place.rename(_aside(place, first))
            _aside(place, head).rename(place)


def _aside(place: Path, head: bytes) -> Path:
    return place.with_stem(f"{place.stem}-{hashlib.sha256(head).hexdigest()[:12]}")


def _name_in(line: bytes) -> str | None:
    """Whose answer a line holds; None if it is damaged, as a disk may leave it: that answer is written again."""
    try:
        told = json.loads(line)
        name, tokens = told["of"], told["answer"]
    except (ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and isinstance(tokens, list) else None


def answer(
    talks: Sequence[Talk],
    writer: Writer,
    kept: Kept,
    check_stop: Callable[[], None],
    tell: Callable[[list[int]], None] = lambda _: None,
) -> None:
    """Every answer that `talks` wait for, turn after turn; `tell` hears how long those are that were written now.

    The last answer of evaluation rows is left to whoever evaluates.
    """
    while waiting := [t for t in talks if t.prompt is not None and not (t.split == "eval" and t.is_last)]:
        new = list({name: talk for talk in waiting if (name := _name(talk)) not in kept}.values())
        began = said = time.monotonic()
        done = 0
        check_stop()
        for some in writer.write([(talk.prompt or [], talk.budget) for talk in new]):
            if some:
                kept.add({_name(new[i]): tokens for i, tokens in some})
            done += len(some)
            tell([len(tokens) for _, tokens in some])
            now = time.monotonic()
            if done == len(new) or now - said > _SECONDS_BETWEEN_LINES:
                said = now
                print(f"responses: {done} of {len(new)} written by the target, {now - began:.0f} s", flush=True)
            if done < len(new):
                check_stop()
        for talk in waiting:
            talk.take(kept[_name(talk)])


def _name(talk: Talk) -> str:
    """By what is asked: rows may be added, or come in another order, and no answer is written twice."""
    return hashlib.blake2b(f"{talk.budget} {talk.prompt}".encode(), digest_size=12).hexdigest()

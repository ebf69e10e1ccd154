"""Whom a host asks when only a person can decide. Asks nothing itself: a screen or a terminal introduces one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key that nobody has vouched for yet. `where` is the machine as a person knows it."""

    where: str
    kind: str
    fingerprint: str


class Person(Protocol):
    async def trusts(self, key: HostKey) -> bool:
        """Whether this is the machine's key. True is remembered for good."""

    async def passphrase(self, key_file: str, *, is_repeated: bool) -> str | None:
        """What opens that private key; None: go on without it. `is_repeated`: the last answer was wrong."""


_present: list[Person] = []
_is_left_alone: ContextVar[bool] = ContextVar("is_left_alone", default=False)


def introduce(person: Person | None) -> None:
    """From now on `person` is asked; with None nobody is, and what needs one fails with a sentence."""
    _present[:] = [person] if person else []


@contextmanager
def leaving_alone() -> Iterator[None]:
    """What is begun within asks nobody: for a look at many hosts, where a question would hold up the others."""
    before = _is_left_alone.set(True)
    try:
        yield
    finally:
        _is_left_alone.reset(before)


def present() -> Person | None:
    return _present[0] if _present and not _is_left_alone.get() else None

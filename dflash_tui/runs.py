"""The nouns: run, state, window. Frozen values and the rules of their names; no I/O, no formatting."""

import re
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from dflash_tui.errors import UsageError

RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def is_run_id(text: str) -> bool:
    """Whether `text` may become a folder's name: nothing from a host becomes a path before this says yes."""
    return RUN_ID.fullmatch(text) is not None


def slug(name: str) -> str:
    """The nearest run id of a person's name for a run, cut to 40 characters so that a stamp fits behind it."""
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:40].rstrip("-._")
    return text or "run"


def new_run_id(name: str) -> str:
    """A run id made by the client: the name, the UTC time and four hex digits against a second laptop."""
    return f"{slug(name)}-{time.strftime('%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


def given_run_id(name: str) -> str:
    """`name` as the run id of an ingested log; UsageError says what a name may look like."""
    if is_run_id(name):
        return name
    raise UsageError(
        f"{name!r} cannot name a run: use lower-case letters, digits, '.', '_' and '-', 64 at most; try {slug(name)!r}"
    )


class RunState(StrEnum):
    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    ORPHANED = "orphaned"
    LOST = "lost"

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run lives any more, as far as its host could tell."""
        return self in _OVER


_OVER = frozenset({RunState.FINISHED, RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED, RunState.LOST})


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `runs --json`. Ages are seconds by the clock of the machine that asks."""

    run_id: str
    name: str
    kind: str
    host: str | None
    state: str
    reason: str | None
    code: int | None
    signal: int | None
    attempt: int | None
    step: int | None
    total_steps: int | None
    age_s: float | None
    no_contact_s: float | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it is registered: `mirrors/<run_id>/run.json`, and a row of `runs`.

    `path` is the run's folder on its host; `log` the log's path there. Both are null for an ingested log. `shape` says
    how the lines of its mirror are read (store/shapes). `commit` and `is_dirty` are those of the checkout that its code
    came from; they stand in `run.json` alone.
    """

    run_id: str
    name: str
    kind: Literal["train", "script", "adopted", "ingested"]
    host: str | None = None
    path: str | None = None
    log: str | None = None
    created: float | None = None
    parent: str | None = None
    code_hash: str | None = None
    config: dict[str, Any] | None = None
    shape: str = "jsonl"
    commit: str | None = None
    is_dirty: bool | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a growing file was read: `offset` bytes of the file with this `inode`.

    `anchor` is the first 16 hex digits of the sha1 of the (at most 64) bytes before `offset`: it tells a file that was
    rewritten in place from one that grew.
    """

    offset: int = 0
    inode: int | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One line of `mirrors/<run_id>/events.jsonl`: what was seen of a run, and when (unix seconds).

    `kind` is "state" (with state, reason, code, signal, attempt, pid) or "note" (with text).
    """

    time: float
    kind: Literal["state", "note"]
    state: str | None = None
    reason: str | None = None
    code: int | None = None
    signal: int | None = None
    attempt: int | None = None
    pid: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """A GPU that a run was on: one line of `mirrors/<run_id>/gpus.jsonl`. `time` is unix seconds of this machine.

    What nobody could know is None; so is `own_memory_mib`, what the run itself holds, where a container hides it.
    """

    time: float
    gpu: int
    name: str | None = None
    utilization_pct: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    own_memory_mib: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The rows a panel looks at: the whole run, its last N rows of `steps`, or steps first..last, both included."""

    kind: Literal["run", "last", "range"] = "run"
    n: int | None = None
    first: int | None = None
    last: int | None = None

    @classmethod
    def last_rows(cls, n: int) -> "Window":
        if n < 1:
            raise UsageError(f"--last {n}: a window holds at least 1 row")
        return cls("last", n=n)

    @classmethod
    def between(cls, first: int, last: int) -> "Window":
        if last < first:
            raise UsageError(f"--from {first} --to {last}: the window ends before it begins")
        return cls("range", first=first, last=last)

    def __str__(self) -> str:
        if self.kind == "last":
            return f"last {self.n:,} row{'' if self.n == 1 else 's'}"
        if self.kind == "range":
            is_open = self.last is not None and self.last >= 2**62
            return f"steps {self.first:,} and later" if is_open else f"steps {self.first:,}..{self.last:,}"
        return "whole run"


Stretches = tuple[Window, Window]
"""Two ranges of steps that are held against one another."""


def parse_range(words: str) -> Window:
    """Steps `A..B`, as a person writes them. Raises UsageError that says how."""
    text = words.strip().replace(",", "").replace("_", "")
    if found := re.fullmatch(r"(\d{1,18})\s*(?:\.\.\.?|-|to)\s*(\d{1,18})", text):
        return Window.between(int(found[1]), int(found[2]))
    raise UsageError(f"{words!r} is no range of steps: write 3000..5000")

"""Answers of panels and checks that are kept while this process lives, for as long as they stay true: whole ones while
their run stands still, the rows of closed buckets while it grows.

What may be kept a file says itself (`cache:` in its header), and how a run stands is one value, read in the
transaction that answers. Nothing here asks the database anything but that.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple, TypeVar

from dflash_tui.store.base import Finding, PanelResult, ResolvedWindow, Row
from dflash_tui.store.engine import duckdb

T = TypeVar("T")

# Some 20 MB of rows: a screen's 14 panels are 3,400 at most.
_MAX_ROWS = 30_000

_STATE = """
select c.generation, coalesce(c.byte_offset, 0), coalesce(c.line_no, 1),
  (select list(row(attempt, generation, cut_step)) from attempts where run = $run),
  (select any_value(total_steps) from runs where run = $run),
  (select list(key) from keys where run = $run)
from (select $run as run) left join cursors c using (run)
"""


class RunState(NamedTuple):
    """All of a run that its panels depend on: how far its log is taken in, its attempts, its length, its keys.

    Lines of one generation are only ever added behind the others, and which of them count is up to the attempts.
    """

    generation: int | None
    byte_offset: int
    line_no: int
    attempts: tuple[tuple[int, ...], ...]
    total_steps: int | None
    keys: frozenset[str]

    def has_grown_from(self, before: "RunState") -> bool:
        """Whether all rows that counted then still do, so that there are at most more of them."""
        same_log = self.generation == before.generation and self.attempts == before.attempts
        return same_log and self.byte_offset >= before.byte_offset


def read_state(cursor: duckdb.DuckDBPyConnection, run_id: str) -> RunState:
    [(generation, byte_offset, line_no, attempts, total_steps, keys)] = cursor.execute(
        _STATE, {"run": run_id}
    ).fetchall()
    in_order = tuple(sorted(map(tuple, attempts or ())))
    return RunState(generation, byte_offset, line_no, in_order, total_steps, frozenset(keys or ()))


class Whole(NamedTuple):
    """The whole run as a window, when its run stood at `state`."""

    state: RunState
    rows: ResolvedWindow


class Buckets(NamedTuple):
    """A chart's rows over the steps `first` to `last`, when its run stood at `state`."""

    state: RunState
    first: int
    last: int
    columns: list[str]
    rows: list[Row]

    def before(self, limit: int) -> list[Row]:
        """The rows of buckets below step `limit`: the column `step` holds a step of a row's bucket."""
        at = self.columns.index("step")
        return [row for row in self.rows if row[at] < limit]


class Kept(NamedTuple):
    """A panel's answer, when its run stood at `state`."""

    state: RunState
    result: PanelResult


class Found(NamedTuple):
    """A check's findings, when its run stood at `state`."""

    state: RunState
    findings: list[Finding]


class Answers:
    """What is kept, the least recently used given up first. Safe from several threads."""

    def __init__(self, max_rows: int = _MAX_ROWS) -> None:
        self._entries: OrderedDict[Hashable, tuple[str, Any, int]] = OrderedDict()
        self._room = max_rows
        self._turn = threading.Lock()
        self.num_forgets = 0

    def get(self, kind: type[T], run_id: str, *question: Hashable) -> T | None:
        key = (kind, run_id, question)
        with self._turn:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            found: T = self._entries[key][1]
            return found

    def put(self, entry: Whole | Buckets | Kept | Found, num_forgets: int, run_id: str, *question: Hashable) -> None:
        """Keep `entry` as what `question` about a run was answered with, in place of what was kept before.

        `num_forgets` is as it was before the transaction began that `entry` was made in: what was seen of a run that
        was forgotten meanwhile is not kept.
        """
        size = 1
        if isinstance(entry, Kept):
            size += len(entry.result.rows)
        elif isinstance(entry, Buckets):
            size += len(entry.rows)
        with self._turn:
            if num_forgets != self.num_forgets:
                return
            self._drop((type(entry), run_id, question))
            self._entries[type(entry), run_id, question] = (run_id, entry, size)
            self._room -= size
            while self._room < 0:
                self._drop(next(iter(self._entries)))

    def forget(self, run_id: str) -> None:
        """Rows of a run were taken out of the tables, and that is committed: another log may come in their place."""
        with self._turn:
            self.num_forgets += 1
            for key in [key for key, (of, _, _) in self._entries.items() if of == run_id]:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        if key in self._entries:
            self._room += self._entries.pop(key)[2]

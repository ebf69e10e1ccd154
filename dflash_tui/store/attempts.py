"""Where a run's attempts begin: the rules of a resume, and the table that remembers them.

An attempt begins with a train row at or before the step of the train row before it (unless its epoch is a later one:
then a counter started again, not the training), with a `start` event of rank 0 after train rows, and with a new
generation of the log. Its first train step voids all that earlier attempts logged from there on.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

from dflash_tui.store.base import NEVER_CUT
from dflash_tui.store.engine import duckdb
from dflash_tui.store.logged import TABLES
from dflash_tui.store.rows import StartRow
from dflash_tui.store.staging import TrainRow


@dataclass(slots=True)
class Attempt:
    """One row of `attempts`, in the order of its columns."""

    attempt: int
    generation: int
    first_line: int
    first_step: int | None = None
    cut_step: int = NEVER_CUT
    started: float | None = None
    resumed_from_step: int | None = None

    @property
    def has_begun(self) -> bool:
        return self.first_step is not None


class Before(NamedTuple):
    """The last train row that was seen in this generation of the log."""

    step: int | None = None
    epoch: float | None = None


def load_newest(db: duckdb.DuckDBPyConnection, run_id: str) -> Attempt:
    row = db.execute(
        "select attempt, generation, first_line, first_step, cut_step, started, resumed_from_step"
        " from attempts where run = $1 order by attempt desc limit 1",
        [run_id],
    ).fetchone()
    return Attempt(*row) if row else Attempt(1, 1, 1)


def follow(
    current: Attempt, generation: int, before: Before, train: Iterable[TrainRow], starts: list[StartRow]
) -> list[Attempt]:
    """The attempts that these rows, both in order, make of `current`, which comes first."""
    found = [current]
    waiting = list(reversed(starts))
    for line_no, step, epoch in train:
        while waiting and waiting[-1].line_no <= line_no:
            current = _start(found, generation, waiting.pop())
        is_back = before.step is not None and step <= before.step and not _is_later(epoch, before.epoch)
        if is_back and current.has_begun:
            current = Attempt(current.attempt + 1, generation, line_no)
            found.append(current)
        if not current.has_begun:
            current.first_step = step
        before = Before(step, epoch)
    while waiting:
        _start(found, generation, waiting.pop())
    return found


def _start(found: list[Attempt], generation: int, start: StartRow) -> Attempt:
    current = found[-1]
    if current.has_begun:
        current = Attempt(current.attempt + 1, generation, start.line_no)
        found.append(current)
    current.started, current.resumed_from_step = start.time, start.resumed_from_step
    return current


def _is_later(epoch: float | None, before: float | None) -> bool:
    return epoch is not None and before is not None and epoch > before


def write_attempts(db: duckdb.DuckDBPyConnection, run_id: str, found: list[Attempt]) -> None:
    """Remember `found`, the newest attempts of a run, and move the rows of the later ones over to them."""
    first, *later = found
    cut = NEVER_CUT
    for attempt in reversed(found):
        attempt.cut_step = min(attempt.cut_step, cut)
        cut = min(cut, NEVER_CUT if attempt.first_step is None else attempt.first_step)
    db.execute("delete from attempts where run = $1 and attempt >= $2", [run_id, first.attempt])
    db.execute("update attempts set cut_step = least(cut_step, $2) where run = $1 and cut_step > $2", [run_id, cut])
    columns = [list(column) for column in zip(*map(astuple, found), strict=True)]
    db.execute(
        "insert into attempts (run, attempt, generation, first_line, first_step, cut_step, started, resumed_from_step)"
        " select $1, unnest($2::int[]), unnest($3::int[]), unnest($4::bigint[]), unnest($5::bigint[]),"
        " unnest($6::bigint[]), unnest($7::double[]), unnest($8::bigint[])",
        [run_id, *columns],
    )
    bounds = [attempt.first_line for attempt in later]
    for table in TABLES if later else ():
        db.execute(
            f"update {table} r set attempt = a.attempt from (select unnest($3::bigint[]) as first_line,"  # noqa: S608
            " unnest($4::bigint[]) as end_line, unnest($5::int[]) as attempt) a"
            " where r.run = $1 and r.generation = $2 and r.line_no >= a.first_line and r.line_no < a.end_line",
            [run_id, first.generation, bounds, [*bounds[1:], NEVER_CUT], [attempt.attempt for attempt in later]],
        )


def next_generation(current: Attempt, generation: int) -> Attempt:
    """The attempt that the first line of a fresh log belongs to: `current` again if nothing was trained in it yet."""
    if current.has_begun:
        return Attempt(current.attempt + 1, generation, 1)
    current.generation, current.first_line = generation, 1
    return current

"""From a run's mirror into the tables, as far as it grew: rows, rejects, attempts, keys and cursor move together.

The only place that writes `records`. Its caller makes sure that there is one at a time.
"""

from dataclasses import dataclass, field, replace

import duckdb

from dflash_tui.store.attempts import (
    Attempt,
    Before,
    follow,
    is_rising,
    last_of,
    load_newest,
    next_generation,
    write_attempts,
)
from dflash_tui.store.base import IngestSummary, RejectedLine
from dflash_tui.store.keys import Names
from dflash_tui.store.ledger import replace_events
from dflash_tui.store.lines import Slice, slices
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.store.rows import RowWriter, SliceRows
from dflash_tui.store.transactions import transaction

# A transaction of more rows than a row group (122,880) goes to the file at once instead of through the log: 1.4 times
# as fast, and the log stays short.
_COMMIT_LINES = 130_000
_SHOWN = 5


@dataclass(slots=True)
class _Place:
    """Where the intake of a run stands: its row of `cursors`, its newest attempt, the keys it has logged."""

    run_id: str
    generation: int
    byte_offset: int
    line_no: int
    before: Before
    attempt: Attempt
    keys: set[str]
    is_new: bool
    shape: str = "jsonl"
    has_moved: bool = False
    total_steps: int | None = None


@dataclass(slots=True)
class _Tally:
    num_rows: int = 0
    num_rejects: int = 0
    num_warnings: int = 0
    num_without_step: int = 0
    rejects: list[RejectedLine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, found: SliceRows) -> None:
        self.num_rows += found.num_rows
        self.num_without_step += found.num_without_step
        self.num_rejects += len(found.rejects)
        self.num_warnings += len(found.warnings)
        self.rejects.extend(found.rejects[: _SHOWN - len(self.rejects)])
        self.warnings.extend(f"line {no}: {text}" for no, text in found.warnings[: _SHOWN - len(self.warnings)])


class Intake:
    """Takes mirrors into the tables of one database, through a connection of its own.

    Nobody else writes these tables, so where a run stands is read from them once and then remembered.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, names: Names) -> None:
        self._db = db
        self._names = names
        self._places: dict[str, _Place] = {}

    def take_in(self, run_id: str) -> IngestSummary:
        """All that the run's mirror holds beyond the tables. An error leaves what was committed before it."""
        mirror = Mirror(run_id)
        tally = _Tally()
        place = self._places.pop(run_id, None) or self._load(run_id)
        if record := mirror.read_record():
            place.shape = record.shape
        if not self._is_current(mirror, place):
            with transaction(self._db):
                if place.byte_offset > mirror.size(TRAIN_LOG, place.generation):
                    self._forget_rows(run_id)
                    place = replace(self._load(run_id), shape=place.shape)
                self._take_files(mirror, place, tally)
                self._save(place)
        # Remembered only now: after an error the tables say where the run stands.
        self._places[run_id] = place
        return IngestSummary(
            run_id=run_id,
            rows=tally.num_rows,
            rejects=tally.num_rejects,
            first_rejects=tally.rejects,
            num_warnings=tally.num_warnings,
            warnings=tally.warnings,
            rows_without_step=tally.num_without_step,
            attempts=place.attempt.attempt,
            last_step=place.before.step,
            held_back_bytes=mirror.size(TRAIN_LOG, place.generation) - place.byte_offset,
        )

    def _is_current(self, mirror: Mirror, place: _Place) -> bool:
        is_newest = place.generation == mirror.generation(TRAIN_LOG)
        return is_newest and place.byte_offset == mirror.size(TRAIN_LOG, place.generation)

    def _load(self, run_id: str) -> _Place:
        keys = self._db.execute("select key from keys where run = $1", [run_id]).fetchall()
        row = self._db.execute(
            "select generation, byte_offset, line_no, last_step, last_epoch from cursors where run = $1", [run_id]
        ).fetchone()
        generation, byte_offset, line_no, step, epoch = row or (1, 0, 1, None, None)
        return _Place(
            run_id,
            generation,
            byte_offset,
            line_no,
            Before(step, epoch),
            load_newest(self._db, run_id),
            {key for (key,) in keys},
            is_new=row is None,
        )

    def _forget_rows(self, run_id: str) -> None:
        # The mirror is shorter than what was read from it: a disk that lost its last writes. Begin again.
        for table in ("records", "rejects", "attempts", "keys", "cursors"):
            self._db.execute(f"delete from {table} where run = $1", [run_id])  # noqa: S608 - names of our own

    def _take_files(self, mirror: Mirror, place: _Place, tally: _Tally) -> None:
        newest = mirror.generation(TRAIN_LOG)
        num_pending = 0
        for generation in range(place.generation, newest + 1):
            path = mirror.path(TRAIN_LOG, generation)
            if not path.exists():
                continue
            if generation > place.generation:
                place.attempt = next_generation(place.attempt, generation)
                place.generation, place.byte_offset, place.line_no, place.before = generation, 0, 1, Before()
                # The mirror noted among the run's events why it began anew.
                replace_events(self._db, place.run_id, mirror.events())
            for part in slices(path, place.byte_offset, place.line_no, is_closed=generation < newest):
                self._take_slice(place, part, tally)
                num_pending += part.num_lines
                if num_pending >= _COMMIT_LINES:
                    self._save(place)
                    self._db.execute("commit")
                    self._db.execute("begin")
                    num_pending = 0

    def _take_slice(self, place: _Place, part: Slice, tally: _Tally) -> None:
        writer = RowWriter(self._db, self._names, place.run_id, place.generation, place.attempt.attempt, place.shape)
        found = writer.write(part, place.keys)
        tally.add(found)
        if fresh := found.keys - place.keys:
            self._db.execute("insert into keys select $1, unnest($2)", [place.run_id, sorted(fresh)])
            place.keys |= fresh
        if found.starts or not place.attempt.has_begun or not is_rising(place.before, found.train):
            attempts = follow(place.attempt, place.generation, place.before, found.train, found.starts)
            write_attempts(self._db, place.run_id, attempts)
            place.attempt = attempts[-1]
        place.before = last_of(found.train, place.before)
        for start in found.starts:
            place.total_steps = start.total_steps or place.total_steps
        place.byte_offset, place.line_no = part.end_offset, part.line_no + part.num_lines
        place.has_moved = True

    def _save(self, place: _Place) -> None:
        if not place.has_moved:
            return
        values = [
            place.run_id,
            place.generation,
            place.byte_offset,
            place.line_no,
            place.attempt.attempt,
            *place.before,
        ]
        if place.is_new:
            self._db.execute("insert into cursors values ($1, $2, $3, $4, $5, $6, $7)", values)
        else:
            self._db.execute(
                "update cursors set generation = $2, byte_offset = $3, line_no = $4, attempt = $5, last_step = $6,"
                " last_epoch = $7 where run = $1",
                values,
            )
        self._db.execute(
            "update runs set last_step = coalesce($2, last_step), total_steps = coalesce($3, total_steps)"
            " where run = $1",
            [place.run_id, place.before.step, place.total_steps],
        )
        place.is_new = place.has_moved = False

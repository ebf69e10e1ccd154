"""From runs' mirrors into the tables, as far as they grew: rows, rejects, attempts, keys and cursors move together.

The only place that writes rows of logs. Its caller makes sure that there is one at a time.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from dflash_tui.store.ahead import work_ahead
from dflash_tui.store.attempts import Attempt, Before, follow, load_newest, next_generation, write_attempts
from dflash_tui.store.base import IngestProgress, IngestSummary, Progress, RejectedLine
from dflash_tui.store.engine import duckdb
from dflash_tui.store.keys import Names
from dflash_tui.store.ledger import replace_events
from dflash_tui.store.lines import SLICE_BYTES, SLICE_LINES, slices
from dflash_tui.store.logged import TABLES, Logged
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.store.rows import Batch, RowReader, SliceRows, SourceSlice
from dflash_tui.store.shapes import line_reader
from dflash_tui.store.staging import Place, TrainRow, copy_rows, drop, drop_all, train_rows
from dflash_tui.store.transactions import transaction

# Two row groups: a transaction of more than one goes to the file at once instead of through the log, which is 1.4 times
# as fast, and the log stays short.
_COMMIT_LINES = 8 * SLICE_LINES
# And no more than this, however long the lines are: between two commits others have their turn, and a Ctrl-C is heard.
_COMMIT_BYTES = 256 << 20
# Parsing is most of the work and DuckDB does a slice in one thread: two slices at a time fill two cores.
_READERS = 2
# Two groups of what is committed together: one is read while the other is written.
_AHEAD = 16
_SHOWN = 5


class _Copy(NamedTuple):
    """A generation of a log in the mirror."""

    path: Path
    size: int


@dataclass(slots=True)
class _Standing:
    """Where the intake of a run stands: its row of `cursors`, its newest attempt, the keys it has logged."""

    run_id: str
    mirror: Mirror
    generation: int
    byte_offset: int
    line_no: int
    before: Before
    attempt: Attempt
    keys: set[str]
    shape: str
    last_step: int | None
    total_steps: int | None
    copies: dict[int, _Copy] = field(default_factory=dict)


@dataclass(slots=True)
class _Source:
    """A generation of a run's log that holds more than the tables, from where on."""

    run: _Standing
    generation: int
    path: Path
    byte_offset: int
    line_no: int
    size: int
    is_closed: bool


class _Meter:
    """Tells how far the sources have been taken in."""

    def __init__(self, sources: list[_Source], progress: Progress) -> None:
        self._progress = progress
        self._begins = [source.byte_offset for source in sources]
        self._ends = list(self._begins)
        self._total = sum(source.size - source.byte_offset for source in sources)
        self._num_rows = 0

    def tell(self) -> None:
        if self._total:
            self._progress(IngestProgress(self._num_rows, sum(self._ends) - sum(self._begins), self._total))

    def advance(self, group: list[Batch]) -> None:
        for batch in group:
            self._num_rows += sum(found.staged.num_rows for found in batch.sources.values() if found.staged)
            for number, (byte_offset, _) in batch.ends.items():
                self._ends[number] = byte_offset
        self.tell()


@dataclass(slots=True)
class _Tally:
    num_rows: int = 0
    num_rejects: int = 0
    num_warnings: int = 0
    num_without_step: int = 0
    rejects: list[RejectedLine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, found: SliceRows) -> None:
        if found.staged:
            self.num_rows += found.staged.num_rows
            self.num_without_step += found.staged.num_without_step
        self.num_rejects += len(found.rejects)
        self.num_warnings += len(found.warnings)
        self.rejects.extend(found.rejects[: _SHOWN - len(self.rejects)])
        self.warnings.extend(f"line {no}: {text}" for no, text in found.warnings[: _SHOWN - len(self.warnings)])


class Intake:
    """Takes mirrors into the tables of one database, through a connection of its own.

    Nobody else writes these tables, so where a run stands is read from them once and then remembered.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, names: Names, logged: Logged, folder: Path) -> None:
        self._db = db
        self._logged = logged
        self._reader = RowReader(names, logged, folder)
        self._standings: dict[str, _Standing] = {}
        self.on_forgotten: Callable[[str], None] = lambda run_id: None
        """Told of a run whose rows were taken out to be read anew, once that is committed."""

    def take_in(self, run_ids: Sequence[str], progress: Progress) -> dict[str, IngestSummary]:
        """All that the mirrors of these runs hold beyond the tables, in transactions of whole lines that all of them
        share. An error leaves what was committed before it. Nobody may set a mirror's log aside meanwhile."""
        runs = [self._standing(run_id) for run_id in dict.fromkeys(run_ids)]
        tallies = {run.run_id: _Tally() for run in runs}
        sources = [source for run in runs for source in _sources(run)]
        meter = _Meter(sources, progress)
        meter.tell()
        try:
            with closing(self._batches(sources)) as batches:
                for group in _groups(batches):
                    with transaction(self._db):
                        for batch in group:
                            self._take(batch, sources, tallies)
                        self._save(_runs_of(group, sources))
                    drop(self._db, [batch.staged for batch in group if batch.staged])
                    meter.advance(group)
        except BaseException:
            drop_all(self._db)
            raise
        # Remembered only now: after an error the tables say where the runs stand.
        self._standings.update((run.run_id, run) for run in runs)
        return {run.run_id: _summary(run, tallies[run.run_id]) for run in runs}

    def remembers(self, run_id: str) -> bool:
        """Whether the run was taken in before, and so is in the tables."""
        return run_id in self._standings

    def reload(self, run_id: str) -> None:
        """What is known of a run has changed: look again when it is taken in next."""
        self._standings.pop(run_id, None)

    def _standing(self, run_id: str) -> _Standing:
        run = self._standings.pop(run_id, None) or self._load(run_id)
        run.copies = _copies(run)
        if run.byte_offset > run.copies[run.generation].size:
            self._forget(run)
            run = self._load(run_id)
            run.copies = _copies(run)
        return run

    def _load(self, run_id: str) -> _Standing:
        keys = self._db.execute("select key from keys where run = $1", [run_id]).fetchall()
        row = self._db.execute(
            "select generation, byte_offset, line_no, before_step, before_epoch, last_step, total_steps from cursors"
            " where run = $1",
            [run_id],
        ).fetchone()
        generation, byte_offset, line_no, step, epoch, last_step, total_steps = row or (1, 0, 1, *[None] * 4)
        mirror = Mirror(run_id)
        record = mirror.read_record()
        return _Standing(
            run_id,
            mirror,
            generation,
            byte_offset,
            line_no,
            Before(step, epoch),
            load_newest(self._db, run_id),
            {key for (key,) in keys},
            record.shape if record else "jsonl",
            last_step,
            total_steps,
        )

    def _forget(self, run: _Standing) -> None:
        """Of a mirror that is shorter than what was read from it, as after a disk lost its last writes, the tables
        hold nothing any more, and it is read again."""
        with transaction(self._db):
            for table in (*TABLES, "rejects", "attempts", "keys", "cursors"):
                self._db.execute(f"delete from {table} where run = $1", [run.run_id])  # noqa: S608 - names of our own
        self.on_forgotten(run.run_id)

    def _batches(self, sources: list[_Source]) -> Generator[Batch]:
        """What the sources hold, in order; read ahead by other threads where there is much."""
        waiting = _cut(sources)
        first = next(waiting, [])
        second = next(waiting, None)
        if second is None:
            yield from self._reader.read(self._db, first) if first else ()
            return
        items = chain((first, second), waiting)
        with closing(work_ahead(items, self._read, num_threads=_READERS, num_ahead=_AHEAD)) as ahead:
            for found in ahead:
                yield from found

    def _read(self, slices: list[SourceSlice]) -> list[Batch]:
        cursor = self._db.cursor()
        try:
            return list(self._reader.read(cursor, slices))
        finally:
            cursor.close()

    def _take(self, batch: Batch, sources: list[_Source], tallies: dict[str, _Tally]) -> None:
        runs = {number: self._turn(sources[number]) for number in batch.sources}
        if batch.staged:
            # All as of the attempt before them: where a later one begins among them is found next.
            places = [Place(n, run.run_id, run.generation, run.attempt.attempt) for n, run in runs.items()]
            copy_rows(self._db, self._logged, batch.staged, places)
        for number, found in batch.sources.items():
            run = runs[number]
            tallies[run.run_id].add(found)
            self._follow(run, batch, number, found)
            self._write_rejects(run, found.rejects)
            run.byte_offset, run.line_no = batch.ends[number]

    def _turn(self, source: _Source) -> _Standing:
        """The run of `source`, standing at its generation."""
        run = source.run
        if source.generation > run.generation:
            run.attempt = next_generation(run.attempt, source.generation)
            run.generation, run.before = source.generation, Before()
            # The mirror noted among the run's events why it began anew.
            replace_events(self._db, run.run_id, run.mirror.events())
        return run

    def _follow(self, run: _Standing, batch: Batch, number: int, found: SliceRows) -> None:
        """Keys, steps and attempts, as far as these rows change them."""
        rows = found.staged
        if rows and (fresh := rows.keys - run.keys):
            self._db.execute("insert into keys select $1, unnest($2)", [run.run_id, sorted(fresh)])
            run.keys |= fresh
        train: list[TrainRow] = []
        if rows and batch.staged and rows.first_step is not None:
            is_rising = rows.is_rising and (run.before.step is None or run.before.step < rows.first_step)
            if found.starts or not is_rising:
                train = train_rows(self._db, batch.staged, number)
            elif not run.attempt.has_begun:
                # All that the rules ask of rows that only rise.
                train = [(0, rows.first_step, None)]
        if found.starts or train or not run.attempt.has_begun:
            attempts = follow(run.attempt, run.generation, run.before, train, found.starts)
            write_attempts(self._db, run.run_id, attempts)
            run.attempt = attempts[-1]
        if rows and rows.last_step is not None:
            run.before = Before(rows.last_step, rows.last_epoch)
            run.last_step = rows.last_step
        for start in found.starts:
            run.total_steps = start.total_steps or run.total_steps

    def _write_rejects(self, run: _Standing, rejects: list[RejectedLine]) -> None:
        if not rejects:
            return
        self._db.execute(
            "insert into rejects (run, generation, line_no, byte_offset, reason, line) select $1, $2,"
            " unnest($3), unnest($4), unnest($5), unnest($6)",
            [
                run.run_id,
                run.generation,
                [line.line_no for line in rejects],
                [line.byte_offset for line in rejects],
                [line.reason for line in rejects],
                [line.text for line in rejects],
            ],
        )

    def _save(self, runs: list[_Standing]) -> None:
        # To update them by a join takes longer to plan.
        self._db.execute("delete from cursors where list_contains($1::varchar[], run)", [[run.run_id for run in runs]])
        rows = [
            (
                *(run.run_id, run.generation, run.byte_offset, run.line_no, run.attempt.attempt),
                *(*run.before, run.last_step, run.total_steps),
            )
            for run in runs
        ]
        self._db.execute(
            "insert into cursors select unnest($1::varchar[]), unnest($2::int[]), unnest($3::bigint[]),"
            " unnest($4::bigint[]), unnest($5::int[]), unnest($6::bigint[]), unnest($7::double[]),"
            " unnest($8::bigint[]), unnest($9::bigint[])",
            [list(column) for column in zip(*rows, strict=True)],
        )


def _copies(run: _Standing) -> dict[int, _Copy]:
    """The generations of the run's log from the one that it stands at, the oldest first."""
    older = dict(run.mirror.older(TRAIN_LOG))
    numbers = range(run.generation, 2 + max(older, default=0))
    paths = {number: older.get(number) or run.mirror.path(TRAIN_LOG) for number in numbers or (run.generation,)}
    return {number: _Copy(path, _size(path)) for number, path in paths.items()}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sources(run: _Standing) -> Iterator[_Source]:
    """What the run's mirror holds beyond the tables, the oldest first."""
    newest = max(run.copies)
    for generation, (path, size) in run.copies.items():
        byte_offset, line_no = (run.byte_offset, run.line_no) if generation == run.generation else (0, 1)
        if size > byte_offset:
            yield _Source(run, generation, path, byte_offset, line_no, size, is_closed=generation < newest)


def _cut(sources: list[_Source]) -> Iterator[list[SourceSlice]]:
    """Slices to be read together: of many small logs at once, of a large one some megabytes."""
    waiting: list[SourceSlice] = []
    num_bytes = num_lines = 0
    for number, source in enumerate(sources):
        if waiting and sources[waiting[-1].source].run is source.run:
            # Which attempt a later generation begins with is known when the one before it was taken.
            yield waiting
            waiting, num_bytes, num_lines = [], 0, 0
        for part in slices(
            source.path, source.byte_offset, source.line_no, size=source.size, is_closed=source.is_closed
        ):
            waiting.append(SourceSlice(number, part, line_reader(source.run.shape)))
            num_bytes += len(part.data)
            num_lines += part.num_lines
            if num_bytes >= SLICE_BYTES // 2 or num_lines >= SLICE_LINES:
                yield waiting
                waiting, num_bytes, num_lines = [], 0, 0
    if waiting:
        yield waiting


def _groups(batches: Iterator[Batch]) -> Iterator[list[Batch]]:
    """Batches that are committed together."""
    waiting: list[Batch] = []
    for batch in batches:
        waiting.append(batch)
        if (
            sum(one.num_lines for one in waiting) >= _COMMIT_LINES
            or sum(one.num_bytes for one in waiting) >= _COMMIT_BYTES
        ):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _runs_of(group: list[Batch], sources: list[_Source]) -> list[_Standing]:
    return list(
        {sources[number].run.run_id: sources[number].run for batch in group for number in batch.sources}.values()
    )


def _summary(run: _Standing, tally: _Tally) -> IngestSummary:
    return IngestSummary(
        run_id=run.run_id,
        rows=tally.num_rows,
        rejects=tally.num_rejects,
        first_rejects=tally.rejects,
        num_warnings=tally.num_warnings,
        warnings=tally.warnings,
        rows_without_step=tally.num_without_step,
        attempts=run.attempt.attempt,
        last_step=run.before.step,
        held_back_bytes=run.copies[run.generation].size - run.byte_offset,
    )

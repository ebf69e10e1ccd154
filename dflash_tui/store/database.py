"""The open DuckDB file: a Store in this process. Many threads may ask; one at a time may write.

Whoever opens it for writing holds the flock of `access.py`. Nothing in this process may open the file by other means,
not even to copy it: closing such a descriptor drops DuckDB's POSIX lock, and a second writer's rows would be lost.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import GpuSample, Run, RunEvent, RunRecord, Stretches, Window
from dflash_tui.store import files, ledger, schema
from dflash_tui.store.base import (
    Answer,
    Finding,
    IngestProgress,
    IngestSummary,
    PanelResult,
    Progress,
    ResolvedWindow,
    RunDetail,
    StoreOptions,
    no_progress,
)
from dflash_tui.store.checks import Question, run_checks
from dflash_tui.store.engine import duckdb
from dflash_tui.store.find import pick_run
from dflash_tui.store.guard import LOCKED_DOWN, query_error
from dflash_tui.store.held import copy_log
from dflash_tui.store.intake import Intake
from dflash_tui.store.interrupts import apart, interruptible
from dflash_tui.store.keys import Names
from dflash_tui.store.logged import read_logged
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, mirrored_runs
from dflash_tui.store.panel_cache import Answers
from dflash_tui.store.panel_windows import resolve_window
from dflash_tui.store.panels import run_panels
from dflash_tui.store.queries import RunningQuery
from dflash_tui.store.sources import open_log
from dflash_tui.store.staging import SCHEMA as STAGING
from dflash_tui.store.transactions import transaction
from dflash_tui.store.turns import Turns
from dflash_tui.text import visible

_COPY_TIMEOUT_S = 600.0
_CLOSED = "the store was closed meanwhile; ask again"
# How often what still reads is interrupted when the store is closed: one between two steps of the engine is lost.
_AGAIN_S = 0.02


class Database:
    """A Store over the file at `path`. duckdb.Error when it cannot be opened; `is_new` tells that it was made now."""

    def __init__(self, path: Path, options: StoreOptions | None = None, *, read_only: bool = False) -> None:
        self.path = path
        self.on_refresh: Callable[[str | None], None] = lambda run_id: None
        self.options = options or StoreOptions()
        self._ingesting = threading.Lock()
        # Whoever writes into mirrors from a host holds it, so that none comes back while it is forgotten. Taken before
        # the two that follow.
        self.mirroring = threading.Lock()
        self._taking_in = threading.Lock()
        self._writing = Turns()
        self._opening = threading.Lock()
        self._running: WeakSet[RunningQuery] = WeakSet()
        self._readers: set[duckdb.DuckDBPyConnection] = set()
        self._answers = Answers()
        self._is_closed = False
        self._db = duckdb.connect(path, read_only=read_only, config=LOCKED_DOWN)
        try:
            self.is_new = not read_only and self._apply_schema()
            self._check_version()
            self._tables = schema.names()
            self._write_db = self._cursor()
            if not read_only:
                self._db.execute(f"attach ':memory:' as {STAGING}")
            logged = read_logged(self._db)
            names = Names(logged.kinds, self.options.aliases)
            self._intake = Intake(self._write_db, names, logged, files.spill_folder(path))
            self._intake.on_forgotten = self._answers.forget
        except BaseException:
            self._db.close()
            raise

    def _apply_schema(self) -> bool:
        if self._db.execute("select count(*) from duckdb_tables() where not internal").fetchall() != [(0,)]:
            return False
        self._db.execute("begin")
        self._db.execute(schema.script())
        self._db.execute("commit")
        # DDL is what a write-ahead log may fail to replay: it must not stay there.
        self._db.execute("checkpoint")
        return True

    def _check_version(self) -> None:
        [(version,)] = self._db.execute("select version from store").fetchall()
        if version != schema.version():
            raise SchemaVersionError(f"{self.path}: was made by another version of dflash-tui (schema {version})")

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        # One cursor a call: threads that share a connection get each other's rows.
        with self._opening:
            if self._is_closed:
                raise DflashError(_CLOSED)
            return self._db.cursor()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """DuckDB's errors as ours: a full disk, a file that broke under us."""
        try:
            with interruptible():
                yield
        except duckdb.Error as e:
            raise DflashError(_CLOSED if self._is_closed else f"{self.path}: {query_error(e)}") from e

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._cursor()
        self._readers.add(cursor)
        try:
            with self._told():
                yield cursor
        finally:
            self._readers.discard(cursor)
            cursor.close()

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._writing, self._told(), transaction(self._write_db) as db:
            yield db

    def running_query(self) -> RunningQuery:
        """A query that can be cancelled before its answer is there."""
        query = RunningQuery(self._cursor(), self._tables)
        self._running.add(query)
        return query

    @property
    def num_running(self) -> int:
        """Queries that hold a cursor now."""
        return sum(query.is_open for query in self._running)

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        return self.running_query().start(sql, params, timeout_s)

    def report(
        self,
        run_id: str,
        names: list[str] | None,
        window: Window,
        buckets: int,
        stretches: Stretches | None = None,
    ) -> list[PanelResult]:
        with self._reading() as db:
            edges, answers = self.options.length_edges, self._answers
            work = partial(run_panels, db, run_id, names, window, buckets, edges, stretches, answers)
            return apart(work, db.interrupt)

    def check(self, run_id: str, baseline: str | None = None) -> list[Finding]:
        options = self.options
        fault = None
        try:
            name = baseline or options.baseline
            against = pick_run(self.runs(), name)[0].run_id if name else None
        except UsageError as e:
            if baseline:
                raise
            # Of the config: what checks find without one is worth more than nothing.
            against, fault = None, str(e)
        question = Question(run_id, options.length_edges, options.thresholds, against, fault)
        with self._reading() as db:
            return apart(partial(run_checks, db, question, self._answers), db.interrupt)

    def window(self, run_id: str, window: Window) -> ResolvedWindow:
        with self._reading() as db:
            return resolve_window(db, run_id, window)

    def runs(self) -> list[Run]:
        with self._reading() as db:
            return ledger.list_runs(db)

    def find(self, name: str) -> tuple[Run, str | None]:
        return pick_run(self.runs(), name)

    def detail(self, run_id: str) -> RunDetail:
        with self._reading() as db:
            return ledger.detail_of(db, run_id)

    def register_run(self, record: RunRecord) -> None:
        with self._transaction() as db:
            Mirror(record.run_id).write_record(record)
            ledger.put_run(db, record)
            self._intake.reload(record.run_id)

    def event(self, run_id: str, event: RunEvent) -> None:
        with self._transaction() as db:
            self._need(db, run_id)
            Mirror(run_id).append_event(event)
            ledger.put_event(db, run_id, event)

    def gpus(self, samples: Mapping[str, Sequence[GpuSample]]) -> None:
        """Add what was seen of the GPUs that runs are on, by run. Of one that is not there nothing is kept."""
        with self._transaction() as db:
            for run_id, seen in samples.items():
                if ledger.has_run(db, run_id):
                    Mirror(run_id).append_gpus(seen)
                    ledger.put_gpus(db, run_id, seen)

    def forget(self, run_id: str) -> None:
        """Take a run out of the store, with its mirror. Harmless for one that is not there."""
        with self._ingesting, self.mirroring, self._taking_in, self._transaction() as db:
            # First the mirror: what it still holds would come back.
            Mirror(run_id).remove()
            ledger.forget_run(db, run_id)
            self._intake.reload(run_id)
        self._answers.forget(run_id)

    def contact(self, run_ids: Sequence[str], time: float) -> None:
        """The host of these runs answered at `time` (unix seconds)."""
        with self._transaction() as db:
            db.execute("update registered set contact = $2 where list_contains($1::varchar[], run)", [run_ids, time])

    def ingest(
        self, run_id: str, file: Path, *, shape: str | None = None, progress: Progress | None = None
    ) -> IngestSummary:
        is_over = threading.Event()

        def tell(told: IngestProgress) -> None:
            if is_over.is_set():
                raise DflashError("the ingest was broken off; what was committed stays, and the next one goes on")
            (progress or no_progress)(told)

        return apart(partial(self._ingest, run_id, file, shape, tell), is_over.set)

    def _ingest(self, run_id: str, file: Path, shape: str | None, tell: Progress) -> IngestSummary:
        # One at a time: two who copy one log would both find the mirror's end where the other is about to write.
        with self._ingesting:
            with self._reading() as db:
                known = ledger.list_runs(db, run_id)
            if known and known[0].host is not None:
                raise UsageError(
                    f"{run_id} is a run of host {known[0].host}: its log is collected from there; choose another --run"
                )
            mirror = Mirror(run_id)
            record = (mirror.read_record() if known else None) or RunRecord(run_id, run_id, "ingested")
            # A file that cannot be read leaves no run behind.
            is_empty = mirror.generation(TRAIN_LOG) == 1 and not mirror.size(TRAIN_LOG)
            go_on = partial(tell, IngestProgress(0, 0, 0))
            with open_log(file, shape, None if is_empty else record.shape, go_on) as log:
                if not known or log.shape != record.shape:
                    self.register_run(replace(record, shape=log.shape))
                copied = copy_log(log, mirror)
            return copied.told(self.take_in(run_id, tell))

    def take_in(self, run_id: str, progress: Progress = no_progress) -> IngestSummary:
        """Take in what the run's mirror holds beyond the tables, in transactions of whole lines."""
        return self.take_in_all([run_id], progress)[run_id]

    def take_in_all(self, run_ids: Sequence[str], progress: Progress = no_progress) -> dict[str, IngestSummary]:
        """As `take_in`, of several runs in the same transactions: what a sweep of a host brought."""

        def go_on(told: IngestProgress) -> None:
            # Between two commits: a launch does not wait for the end of a large log.
            self._writing.let_pass()
            progress(told)

        with self._taking_in, self._writing, self._told():
            for run_id in run_ids:
                if not self._intake.remembers(run_id):
                    self._need(self._write_db, run_id)
            return self._intake.take_in(run_ids, go_on)

    def stale_runs(self) -> list[str]:
        """The runs whose mirror holds more than the tables, or less; a half last line is more as well."""
        with self._reading() as db:
            known = ledger.extents(db)
        return [run_id for run_id in mirrored_runs() if known.get(run_id) != Mirror(run_id).extent()]

    def restore(self, run_id: str, progress: Progress = no_progress) -> IngestSummary:
        """Put a run that only its mirror knows back into the tables: its record, its events, its rows."""
        mirror = Mirror(run_id)
        record = mirror.read_record() or RunRecord(run_id, run_id, "ingested")
        with self._transaction() as db:
            ledger.put_run(db, record)
            ledger.replace_events(db, run_id, mirror.events())
            db.execute("delete from gpus where run = $1", [run_id])
            ledger.put_gpus(db, run_id, list(mirror.gpus()))
        return self.take_in(run_id, progress)

    def snapshot(self, path: Path) -> None:
        with self._writing, self._told():
            self._write_db.execute("checkpoint")
            # A child copies: this process must not open the file, see above.
            copied = subprocess.run(
                ["cp", "--", self.path, path], capture_output=True, text=True, timeout=_COPY_TIMEOUT_S, check=False
            )
        if copied.returncode != 0:
            raise DflashError(f"no snapshot at {path}: {visible(copied.stderr.strip())}")

    def refresh(self, run_id: str | None) -> None:
        self.on_refresh(run_id)

    def close(self) -> None:
        with self._taking_in, self._writing, self._opening:
            self._is_closed = True
            self._write_db.close()
            while not self._has_closed():
                time.sleep(_AGAIN_S)
            with suppress(OSError):
                files.spill_folder(self.path).rmdir()

    def _has_closed(self) -> bool:
        """False while somebody reads, who is interrupted: nobody who leaves waits for the end of a long question."""
        try:
            self._db.close()
        except duckdb.ResourceInUseException:
            for query in list(self._running):
                query.cancel()
            for cursor in list(self._readers):
                with suppress(duckdb.ConnectionException):
                    cursor.interrupt()
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _need(self, db: duckdb.DuckDBPyConnection, run_id: str) -> None:
        if not ledger.has_run(db, run_id):
            raise UsageError(f"there is no run {run_id!r} in the store: register it first")


class SchemaVersionError(DflashError):
    """The tables are not those of this program: they are made anew from the mirrors."""

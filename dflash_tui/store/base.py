"""What a store answers with, and the face that every store shows: the open database, the owner's client.

Only values and a Protocol stand here: no duckdb, no asyncio. What a query alone needs of it stands in answer.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec

from dflash_tui.runs import Run, RunEvent, RunRecord, Stretches, Window
from dflash_tui.store.answer import Answer as Answer
from dflash_tui.store.answer import Row as Row
from dflash_tui.store.frames import IngestProgress as IngestProgress
from dflash_tui.store.frames import Progress as Progress
from dflash_tui.store.frames import no_progress as no_progress

NEVER_CUT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a person may set of a store in config.toml: `[aliases]`, `[panels] length_edges` and `[checks]`."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    length_edges: tuple[float, float] = (1500.0, 3000.0)
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    baseline: str | None = None


class ResolvedWindow(msgspec.Struct, frozen=True):
    """A window laid over the rows that are there: `n` rows of `steps`, from step `first` to `last`."""

    kind: Literal["run", "last", "range"]
    n: int
    first: int | None
    last: int | None


class PanelResult(msgspec.Struct, frozen=True):
    """One panel's answer. `why` says what is missing ("empty") or what went wrong ("failed")."""

    name: str
    title: str
    chart: str
    state: Literal["rows", "empty", "failed"]
    why: str | None = None
    headline: str | None = None
    columns: list[str] = []
    units: list[str] = []
    rows: list[list[Any]] = []
    unit: str | None = None
    scale: Literal["linear", "log"] = "linear"
    better: Literal["lower", "higher"] | None = None
    order: int = 0
    help: str = ""
    axes: dict[str, str] = {}


# From mild to bad.
Severity = Literal["info", "warning", "critical"]


class Finding(msgspec.Struct, frozen=True):
    """One verdict of a check: a sentence with the numbers, the steps concerned, and what to look at next."""

    check: str
    title: str
    severity: Severity
    sentence: str
    steps: list[int] = []
    values: dict[str, Any] = {}
    next: str = ""


class RejectedLine(msgspec.Struct, frozen=True):
    """A line that is no record: where it stands in its log (lines from 1, bytes from 0), and why."""

    line_no: int
    byte_offset: int
    reason: str
    text: str


class IngestSummary(msgspec.Struct, frozen=True):
    """What one reading of a log brought: `rows` and `rejects` count what is new, the rest is how the run stands."""

    run_id: str
    rows: int = 0
    rejects: int = 0
    first_rejects: list[RejectedLine] = []
    num_warnings: int = 0
    warnings: list[str] = []
    rows_without_step: int = 0
    attempts: int = 0
    last_step: int | None = None
    held_back_bytes: int = 0


class AttemptRow(msgspec.Struct, frozen=True):
    """One stretch of a run between resumes. Its rows count while step < `cut_step` (None: all of them)."""

    attempt: int
    generation: int
    first_line: int
    first_step: int | None
    cut_step: int | None
    started: float | None
    resumed_from_step: int | None


class RunDetail(msgspec.Struct, frozen=True):
    """All that `status`, `stop` and `resume` need of one run; `note`: what was said of its state, why it failed say."""

    run: Run
    record: RunRecord
    pid: int | None
    state_since: float | None
    attempts: list[AttemptRow]
    note: str | None = None


class Cancellable(Protocol):
    """One query. `start` and the answer's reader belong to one thread, `cancel` to any; the reader meets a QueryError
    then."""

    def start(self, sql: str, params: dict[str, Any] | None, timeout_s: float | None) -> Answer:
        """As `Store.query`."""

    def cancel(self) -> None:
        """Harmless before and after."""


class Store(Protocol):
    """What can be asked of a store. Blocking, and safe from several threads.

    Errors: QueryError, UsageError, TimedOutError, StoreBusyError, DflashError.
    """

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        """One read-only statement of a person's; the time limit holds until its last row was made."""

    def running_query(self) -> Cancellable:
        """A query that can be cancelled before its answer is there."""

    def report(
        self,
        run_id: str,
        names: list[str] | None,
        window: Window,
        buckets: int,
        stretches: Stretches | None = None,
    ) -> list[PanelResult]:
        """The panels called `names` (None: all) over `window`, in their order; `buckets` bounds a chart's rows.

        `stretches` are what panels of two windows compare; without, each takes its own.
        """

    def check(self, run_id: str, baseline: str | None = None) -> list[Finding]:
        """What the checks find of a run, the worst first; by itself, and held against `baseline`, a run as in `find`.

        None: against the one that the store's options name, if they do.
        """

    def window(self, run_id: str, window: Window) -> ResolvedWindow: ...

    def runs(self) -> list[Run]:
        """Every run, the newest first."""

    def find(self, name: str) -> tuple[Run, str | None]:
        """The run meant by `name`: a run_id, else the newest so named (and a notice), else a unique prefix."""

    def detail(self, run_id: str) -> RunDetail: ...

    def register_run(self, record: RunRecord) -> None:
        """Remember a run, beside its mirror and in the tables; the same run again replaces what was known."""

    def event(self, run_id: str, event: RunEvent) -> None: ...

    def forget(self, run_id: str) -> None:
        """Take a run out of the store, with its mirror; its host is not touched. Twice is as good as once."""

    def ingest(
        self, run_id: str, file: Path, *, shape: str | None = None, progress: Progress | None = None
    ) -> IngestSummary:
        """Copy a log on this machine into the run's mirror, as far as it is new, and take it in.

        `shape` is how its lines are read (None: found out). Cut off at any moment, the same ingest goes on later.
        """

    def snapshot(self, path: Path) -> None:
        """A consistent copy of the database file at `path`."""

    def refresh(self, run_id: str | None) -> None:
        """Ask the collector to look at this run's host now (None: at all). Nothing without a collector."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

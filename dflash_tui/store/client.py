"""A Store that asks the owner through its socket. Starts in a few milliseconds: no duckdb, no asyncio.

Every call has a connection of its own, so calls from several threads do not meet, and closing it cancels.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from dflash_tui.runs import Run, RunEvent, RunRecord, Stretches, Window
from dflash_tui.store import wire
from dflash_tui.store.base import (
    Answer,
    Finding,
    IngestSummary,
    PanelResult,
    Progress,
    ResolvedWindow,
    RunDetail,
    no_progress,
)
from dflash_tui.store.exchange import Exchange, OwnerQuery, query_owner
from dflash_tui.store.exchange import OwnerGoneError as OwnerGoneError
from dflash_tui.store.exchange import has_owner as has_owner
from dflash_tui.store.find import pick_run
from dflash_tui.store.frames import Request, unpack

T = TypeVar("T")


class StoreClient:
    """Ask whoever owns the store now. OwnerGoneError when nobody listens."""

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        return query_owner(sql, params, timeout_s)

    def running_query(self) -> OwnerQuery:
        return OwnerQuery()

    def report(
        self,
        run_id: str,
        names: list[str] | None,
        window: Window,
        buckets: int,
        stretches: Stretches | None = None,
    ) -> list[PanelResult]:
        return self.ask(wire.Panels(run_id, names, window, buckets, stretches), list[PanelResult])

    def check(self, run_id: str, baseline: str | None = None) -> list[Finding]:
        return self.ask(wire.Check(run_id, baseline), list[Finding])

    def window(self, run_id: str, window: Window) -> ResolvedWindow:
        return self.ask(wire.Resolve(run_id, window), ResolvedWindow)

    def runs(self) -> list[Run]:
        return self.ask(wire.Runs(), list[Run])

    def find(self, name: str) -> tuple[Run, str | None]:
        return pick_run(self.runs(), name)

    def detail(self, run_id: str) -> RunDetail:
        return self.ask(wire.Detail(run_id), RunDetail)

    def register_run(self, record: RunRecord) -> None:
        self.ask(wire.RegisterRun(record), type(None))

    def event(self, run_id: str, event: RunEvent) -> None:
        self.ask(wire.Event(run_id, event), type(None))

    def forget(self, run_id: str) -> None:
        self.ask(wire.Forget(run_id), type(None))

    def ingest(
        self, run_id: str, file: Path, *, shape: str | None = None, progress: Progress | None = None
    ) -> IngestSummary:
        asked = wire.Ingest(run_id, str(file.absolute()), shape)
        return self.ask(asked, IngestSummary, progress or no_progress)

    def snapshot(self, path: Path) -> None:
        self.ask(wire.Snapshot(str(path.absolute())), type(None))

    def refresh(self, run_id: str | None) -> None:
        self.ask(wire.Refresh(run_id), type(None))

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Request, kind: type[T], progress: Progress = no_progress) -> T:
        """One request, and its one answer as a `kind`."""
        exchange = Exchange(request, progress)
        try:
            return unpack(exchange.blob(), kind)
        finally:
            exchange.close()

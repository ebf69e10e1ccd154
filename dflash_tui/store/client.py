"""A Store that asks the owner through its socket. Starts in a few milliseconds: no duckdb, no asyncio.

Every call has a connection of its own, so calls from several threads do not meet, and closing it cancels.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.runs import Run, RunEvent, RunRecord, Window
from dflash_tui.store import wire
from dflash_tui.store.base import (
    Answer,
    IngestSummary,
    PanelResult,
    Progress,
    ResolvedWindow,
    Row,
    RunDetail,
    no_progress,
)
from dflash_tui.store.find import pick_run
from dflash_tui.store.lock import holder
from dflash_tui.store.wire import HELLO_S, SILENT_S, Head, QueryHead, raised, unpack

_CONNECT_TIMEOUT_S = 2.0
T = TypeVar("T")


class OwnerGoneError(DflashError):
    """There is no owner at the socket, or it went away before it answered."""


def has_owner() -> bool:
    """Whether somebody listens at the socket. StoreBusyError when it is there but does not take the call."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_TIMEOUT_S)
        try:
            probe.connect(_place())
        except TimeoutError as e:
            raise _unresponsive() from e
        except OSError:
            return False
    return True


class StoreClient:
    """Ask whoever owns the store now. OwnerGoneError when nobody listens."""

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        exchange = Exchange(wire.Query(sql, params or {}, timeout_s))
        try:
            head = unpack(exchange.blob(), QueryHead)
        except BaseException:
            exchange.close()
            raise
        return Answer(head.columns, head.types, _batches(exchange), exchange.close)

    def report(self, run_id: str, names: list[str] | None, window: Window, buckets: int) -> list[PanelResult]:
        return self.ask(wire.Panels(run_id, names, window, buckets), list[PanelResult])

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

    def ask(self, request: wire.Request, kind: type[T], progress: Progress = no_progress) -> T:
        """One request, and its one answer as a `kind`."""
        exchange = Exchange(request, progress)
        try:
            return unpack(exchange.blob(), kind)
        finally:
            exchange.close()


class Exchange:
    """One request and its answers; `progress` hears how far the first one is."""

    def __init__(self, request: wire.Request, progress: Progress = no_progress) -> None:
        self.has_more = True
        self._progress = progress
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_CONNECT_TIMEOUT_S)
            self._socket.connect(_place())
            self._file = self._socket.makefile("rb")
            self._socket.settimeout(HELLO_S)
            self._socket.sendall(wire.encode_request(request))
            if not self._file.peek(1):
                raise OwnerGoneError("the owner of the store went away before it answered; ask again")
            self._socket.settimeout(SILENT_S)
        except TimeoutError as e:
            self._socket.close()
            raise _unresponsive() from e
        except OSError as e:
            self._socket.close()
            raise OwnerGoneError(f"nobody answers at {paths.socket_file()} ({e.strerror})") from e
        except BaseException:
            self._socket.close()
            raise

    def blob(self) -> bytes:
        """The next blob; the error instead, if the owner met one."""
        try:
            while (head := self._head()).progress:
                self._progress(head.progress)
            if head.problem:
                raise raised(head.problem)
            blob = self._file.read(head.size)
        except TimeoutError as e:
            raise _unresponsive() from e
        except OSError as e:
            raise OwnerGoneError("the owner of the store went away before it answered; ask again") from e
        if len(blob) < head.size:
            raise OwnerGoneError("the owner of the store went away in mid-answer; ask again")
        self.has_more = head.has_more
        return blob

    def _head(self) -> Head:
        line = b"\n"
        while line == b"\n":
            line = self._file.readline()
        if not line.endswith(b"\n"):
            raise OwnerGoneError("the owner of the store went away before it answered; ask again")
        return msgspec.json.decode(line, type=Head)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def _batches(exchange: Exchange) -> Iterator[list[Row]]:
    while exchange.has_more:
        if rows := unpack(exchange.blob(), list[tuple[Any, ...]]):
            yield rows


def _place() -> str:
    """Where the socket is. DflashError when its folder is not ours alone: a stranger would hear what we ask."""
    place = paths.socket_file()
    with suppress(OSError):
        paths.check_private(place.parent)
    return str(place)


def _unresponsive() -> StoreBusyError:
    return StoreBusyError(f"the store's owner, {holder()}, does not answer; end it, or try again later")

"""One request to the owner and its answer, through its socket. All that a query needs of a client: nothing heavy here.

Every request has a connection of its own, so calls from several threads do not meet, and closing it cancels.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from dflash_tui import paths
from dflash_tui.errors import DflashError, QueryError, StoreBusyError
from dflash_tui.store.answer import Answer, Row
from dflash_tui.store.frames import (
    HELLO_S,
    SILENT_S,
    Head,
    Progress,
    Query,
    QueryHead,
    Request,
    encode_request,
    no_progress,
    raised,
    unpack,
)

_CONNECT_TIMEOUT_S = 2.0


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


def query_owner(sql: str, params: dict[str, Any] | None = None, timeout_s: float | None = None) -> Answer:
    """`Store.query`, asked of whoever owns the store now. OwnerGoneError when nobody listens."""
    return OwnerQuery().start(sql, params, timeout_s)


class OwnerQuery:
    """One query to whoever owns the store. `start` and the answer's reader belong to one thread, `cancel` to any."""

    def __init__(self) -> None:
        self._exchange: Exchange | None = None
        self._is_cancelled = False

    def start(self, sql: str, params: dict[str, Any] | None, timeout_s: float | None) -> Answer:
        """As `query_owner`."""
        with self._told():
            exchange = self._exchange = Exchange(Query(sql, params or {}, timeout_s))
            if self._is_cancelled:
                exchange.hang_up()
            try:
                head = unpack(exchange.blob(), QueryHead)
            except BaseException:
                exchange.close()
                raise
        return Answer(head.columns, head.types, self._batches(exchange), exchange.close)

    def cancel(self) -> None:
        """Stop it now; its reader meets a QueryError. Harmless before and after."""
        self._is_cancelled = True
        if self._exchange:
            self._exchange.hang_up()

    def _batches(self, exchange: "Exchange") -> Iterator[list[Row]]:
        while exchange.has_more:
            with self._told():
                rows = unpack(exchange.blob(), list[tuple[Any, ...]])
            if rows:
                yield rows

    @contextmanager
    def _told(self) -> Iterator[None]:
        """That the owner is gone for us, who hung up, is no news."""
        try:
            if self._is_cancelled:
                raise QueryError("the query was cancelled")
            yield
        except OwnerGoneError as e:
            if self._is_cancelled:
                raise QueryError("the query was cancelled") from e
            raise


class Exchange:
    """One request and its answers; `progress` hears how far the first one is."""

    def __init__(self, request: Request, progress: Progress = no_progress) -> None:
        self.has_more = True
        self._progress = progress
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_CONNECT_TIMEOUT_S)
            self._socket.connect(_place())
            self._file = self._socket.makefile("rb")
            self._socket.settimeout(HELLO_S)
            self._socket.sendall(encode_request(request))
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

    def hang_up(self) -> None:
        """From any thread: whoever waits for an answer meets an OwnerGoneError, and the owner stops working at it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def _place() -> str:
    """Where the socket is. DflashError when its folder is not ours alone: a stranger would hear what we ask."""
    place = paths.socket_file()
    with suppress(OSError):
        paths.check_private(place.parent)
    return str(place)


def _unresponsive() -> StoreBusyError:
    from dflash_tui.store.lock import holder

    return StoreBusyError(f"the store's owner, {holder()}, does not answer; end it, or try again later")

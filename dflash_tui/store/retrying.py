"""A client for one command: when the owner goes away before it has answered, whoever has the store next is asked.

Short-lived owners come and go (`ingest`, `launch`), and a session may be left at any moment: none of that is the
trouble of who only asks.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any, TypeVar, cast

from dflash_tui.errors import StoreBusyError
from dflash_tui.store import wire
from dflash_tui.store.base import Answer, Progress, Store, no_progress
from dflash_tui.store.client import OwnerGoneError, StoreClient
from dflash_tui.store.frames import Request
from dflash_tui.store.lock import BUSY_AFTER_S, RETRY_S
from dflash_tui.store.mirror import Mirror

T = TypeVar("T")


class RetryingClient(StoreClient):
    """`take_seat` waits for the next owner, or makes this process read or own the store itself. `open_file` is for who
    only reads: an owner that cannot have the file, as others read it, is in nobody's way who reads as well.

    Only what nobody has answered is asked again. Reads change nothing, and of the writes twice is as good as once: an
    event that the owner noted before it died is found in the mirror.
    """

    def __init__(
        self,
        take_seat: Callable[[], AbstractContextManager[Store]],
        open_file: Callable[[], AbstractContextManager[Store]] | None = None,
    ) -> None:
        self._take_seat = take_seat
        self._open_file = open_file
        self._seat: Store = StoreClient()
        self._has_moved = False
        self._left = ExitStack()

    def ask(self, request: Request, kind: type[T], progress: Progress = no_progress) -> T:
        return self._patiently(lambda: self._ask_seat(request, kind, progress))

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        return self._patiently(lambda: self._seat.query(sql, params, timeout_s=timeout_s).begun())

    def _patiently(self, work: Callable[[], T]) -> T:
        gone_since: float | None = None
        has_opened = False
        while True:
            asked_at = time.monotonic()
            try:
                return work()
            except OwnerGoneError:
                # One on its way out takes calls for some milliseconds more, and the next one may go as soon.
                now = time.monotonic()
                if gone_since is None or now > asked_at + BUSY_AFTER_S:
                    gone_since = now
                elif now > gone_since + BUSY_AFTER_S:
                    raise
                else:
                    time.sleep(RETRY_S)
                self._move(self._take_seat)
            except StoreBusyError as busy:
                if self._open_file is None or has_opened:
                    raise
                has_opened = True
                try:
                    self._move(self._open_file)
                except StoreBusyError:
                    raise busy from None

    def _move(self, take_seat: Callable[[], AbstractContextManager[Store]]) -> None:
        self._seat = self._left.enter_context(take_seat())
        self._has_moved = True

    def _ask_seat(self, request: Request, kind: type[T], progress: Progress) -> T:
        if isinstance(request, wire.Event) and self._has_moved and request.event in Mirror(request.run_id).events():
            return cast(T, None)
        if isinstance(self._seat, StoreClient):
            return self._seat.ask(request, kind, progress)
        from dflash_tui.store.database import Database
        from dflash_tui.store.operations import operation

        assert isinstance(self._seat, Database)
        return cast(T, operation(self._seat, request, progress)())

    def close(self) -> None:
        self._left.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.__exit__(kind, error, trace)

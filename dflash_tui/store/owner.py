"""The owner of the store: it alone has the database open for writing, and answers all others through a unix socket.

Runs in any asyncio loop, the session's or one of its own. What is said to one client stands in conversation.py.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.base import IngestProgress, StoreOptions
from dflash_tui.store.conversation import ClientGoneError, Conversation
from dflash_tui.store.database import Database
from dflash_tui.store.frames import MAX_REQUEST_BYTES, encode_request
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.opening import Notice, open_for_writing
from dflash_tui.store.queries import RunningQuery
from dflash_tui.store.wire import Wait

_MAX_WORKING = 16
_MAX_ENDING = 4
_REQUEST_TIMEOUT_S = 10.0
# How long an owner that leaves lets answers go on that may be about to end.
_GRACE_S = 0.5
T = TypeVar("T")


class _Cancelled(Exception):
    """The database is no longer wanted."""


class Owner:
    """Opens the database and serves it until the `async with` is left; then it and the lock are given up.

    Whoever asks while it is opened, which may mean a rebuild, hears that we live and waits. When it cannot be opened,
    the `async with` raises as `open_for_writing` does, and whoever waits is told the same.
    """

    database: Database

    def __init__(self, lock: StoreLock, notice: Notice, options: StoreOptions) -> None:
        self._lock = lock
        self._notice = notice
        self._options = options
        self._opened: asyncio.Future[Database] | None = None
        self._threads = ThreadPoolExecutor(_MAX_WORKING, "store")
        self._enders = ThreadPoolExecutor(_MAX_ENDING, "store-end")
        # They take turns anyway: those that wait must not fill the other threads.
        self._ingests = ThreadPoolExecutor(1, "store-ingest")
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._leaving = asyncio.Event()

    async def __aenter__(self) -> Self:
        place = paths.socket_file()
        try:
            paths.private_dir(place.parent)
            # asyncio removes what lies there: a dead owner's, as only the holder of the lock comes here.
            self._opened = asyncio.get_running_loop().create_future()
            self._server = await asyncio.start_unix_server(self._accept, place, limit=MAX_REQUEST_BYTES)
            place.chmod(0o600)
            self.database = await self._open()
            self._opened.set_result(self.database)
        except BaseException as e:
            if self._opened and isinstance(e, DflashError):
                self._opened.set_exception(e)
                self._opened.exception()  # Else it is complained of when nobody waited.
            await self._leave()
            raise
        return self

    async def _open(self) -> Database:
        """A cancelled one ends at the next commit of what it takes in."""

        def go_on(progress: IngestProgress) -> None:
            if self._leaving.is_set():
                raise _Cancelled

        opening = self.in_thread(partial(open_for_writing, self._notice, self._options, go_on))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._leaving.set()
            while not opening.done():
                # Ctrl-C twice cancels twice; the thread still has to end first.
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({opening})
            if not opening.exception():
                opening.result().close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        self._leaving.set()
        if self._server:
            self._server.close()
            paths.socket_file().unlink(missing_ok=True)
        if self._clients:
            await asyncio.wait(self._clients, timeout=_GRACE_S)
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await asyncio.to_thread(self.give_up)

    def give_up(self) -> None:
        """Leave database and lock; for an owner that never served, or has ended serving."""
        self._enders.shutdown()
        self._ingests.shutdown(cancel_futures=True)
        self._threads.shutdown(cancel_futures=True)
        if hasattr(self, "database"):
            self.database.close()
        self._lock.release()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._leaving.is_set():
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)
        # Not in the task: one that is cancelled before its first step runs no `finally`, and its client would wait.
        task.add_done_callback(lambda done: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _is_ours(writer.get_extra_info("socket")):
                line = await _read_request(reader)
                if line:
                    await Conversation(self, reader, writer).answer(line)
        except (ClientGoneError, OSError):
            pass  # Nobody is left to be told.

    def in_thread(self, work: Callable[[], T], *, is_ingest: bool = False) -> "asyncio.Future[T]":
        threads = self._ingests if is_ingest else self._threads
        return asyncio.get_running_loop().run_in_executor(threads, work)

    def opened(self) -> "asyncio.Future[Database]":
        """The database, once it is open."""
        assert self._opened
        return self._opened

    async def leaving(self) -> None:
        """Returns when we are about to go."""
        await self._leaving.wait()

    async def end(self, query: RunningQuery) -> None:
        """Give a query's cursor back, also while all threads are busy, this query's among them."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._enders, query.close))


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            return await reader.readline()
    except ValueError:
        return b"(a line longer than the limit)"


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to this user. The folder's mode says so too; Linux lets us ask."""
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(uid == os.getuid())


def take_ownership(notice: Notice, options: StoreOptions) -> Owner | None:
    """The owner that this process now is, for `async with`; None while another one is. `notice` is told in a sentence
    what was repaired."""
    lock = StoreLock.try_take()
    return Owner(lock, notice, options) if lock else None


async def owner_gone() -> None:
    """Returns when the owner at the socket goes away, at once when there is none: the moment to try to become it."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_unix_connection(paths.socket_file())
        try:
            writer.write(encode_request(Wait()))
            while await reader.read(4096):
                pass
        finally:
            writer.close()

"""The owner of the store: it alone has the database open for writing, and answers all others through a unix socket.

Runs in any asyncio loop, the session's or one of its own. Every request works in a thread with a cursor of its own, so
a slow one holds up nobody; one whose client has gone is cancelled.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.base import Answer, IngestProgress, Progress, StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.frames import (
    ALIVE_EVERY_S,
    MAX_REQUEST_BYTES,
    Query,
    QueryHead,
    encode_request,
    frame,
    pack,
    problem_frame,
    progress_frame,
)
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.opening import Notice, open_for_writing
from dflash_tui.store.operations import operation
from dflash_tui.store.queries import BATCH_ROWS, RunningQuery
from dflash_tui.store.wire import Ingest, Wait, decode_request

_MAX_WORKING = 16
_MAX_ENDING = 4
_REQUEST_TIMEOUT_S = 10.0
# How long an owner that leaves lets answers go on that may be about to end.
_GRACE_S = 0.5
T = TypeVar("T")


class _ClientGone(Exception):
    """Whoever asked is no longer there."""


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
                    await _Conversation(self, reader, writer).answer(line)
        except (_ClientGone, OSError):
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


class _Conversation:
    """One client's request and what it gets."""

    def __init__(self, owner: Owner, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._owner = owner
        self._writer = writer
        self._gone = asyncio.ensure_future(reader.read(1))
        self._is_over = False

    async def answer(self, line: bytes) -> None:
        try:
            await self._send(b"\n")
            match decode_request(line):
                case Wait():
                    await self._wait_for_the_end()
                case Query() as asked:
                    await self._answer_query(await self._alive_until(self._owner.opened()), asked)
                case other:
                    database = await self._alive_until(self._owner.opened())
                    work = operation(database, other, self._progress_from(asyncio.get_running_loop()))
                    answer = await self._wait(work, is_ingest=isinstance(other, Ingest))
                    await self._send(frame(pack(answer)))
        except DflashError as e:
            await self._send(problem_frame(e))
        finally:
            self._is_over = True
            self._gone.cancel()

    def _progress_from(self, loop: asyncio.AbstractEventLoop) -> Progress:
        """What a thread tells its progress to. A client that left, or we who leave, end its work there."""

        def tell(progress: IngestProgress) -> None:
            if self._is_over:
                raise DflashError("the ingest was broken off; what was committed stays, and the next one goes on")
            loop.call_soon_threadsafe(send, progress)

        def send(progress: IngestProgress) -> None:
            # A client that does not read misses some.
            if not self._is_over and not self._writer.transport.get_write_buffer_size():
                self._writer.write(progress_frame(progress))

        return tell

    async def _answer_query(self, database: Database, asked: Query) -> None:
        query = database.running_query()
        try:
            answer = await self._wait(partial(query.start, asked.sql, asked.params, asked.timeout_s))
            await self._send(frame(pack(QueryHead(answer.columns, answer.types)), has_more=True))
            parts = _parts(answer)
            while part := await self._wait(lambda: next(parts, None)):
                await self._send(part)
        finally:
            await self._owner.end(query)

    async def _wait_for_the_end(self) -> None:
        """For a session that takes over when we go: signs of life, and nothing else."""
        leaving = asyncio.ensure_future(self._owner.leaving())
        try:
            await self._alive_until(leaving)
        finally:
            leaving.cancel()

    async def _wait(self, work: Callable[[], T], *, is_ingest: bool = False) -> T:
        """What `work` gives, in a thread."""
        future = self._owner.in_thread(work, is_ingest=is_ingest)
        try:
            return await self._alive_until(future)
        finally:
            # One that has not begun never will; of one that has, nobody wants to know the end.
            future.cancel()

    async def _alive_until(self, awaited: "asyncio.Future[T]") -> T:
        """Its outcome; meanwhile the client hears that we live. _ClientGone when it left."""
        either: set[asyncio.Future[Any]] = {awaited, self._gone}
        while True:
            await asyncio.wait(either, timeout=ALIVE_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if awaited.done():
                return _result(awaited)
            if self._gone.done():
                raise _ClientGone
            await self._send(b"\n")

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _parts(answer: Answer) -> Iterator[bytes]:
    """The rows as frames. A small answer is one, so that an owner that dies has told all of it or nothing."""
    batches = answer.batches()
    batch = next(batches, [])
    while True:
        # Behind a full batch nobody is kept waiting to learn whether it is the last.
        following = next(batches, []) if 0 < len(batch) < BATCH_ROWS else None
        is_last = not batch or following == []
        yield frame(pack(batch), has_more=not is_last)
        if is_last:
            return
        batch = following or next(batches, [])


def _result(done: "asyncio.Future[T]") -> T:
    try:
        return done.result()
    except DflashError:
        raise
    except OSError as e:
        raise DflashError(f"{e.filename or paths.data_dir()}: {e.strerror or e}") from e
    except Exception as e:
        raise DflashError(f"the store's owner, PID {os.getpid()}, failed at this: {e!r}") from e


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

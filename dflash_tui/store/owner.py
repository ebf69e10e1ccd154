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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.base import IngestProgress, Progress, StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.opening import Notice, open_for_writing
from dflash_tui.store.queries import RunningQuery
from dflash_tui.store.wire import (
    ALIVE_EVERY_S,
    MAX_REQUEST_BYTES,
    AnyRequest,
    Detail,
    Event,
    Ingest,
    Panels,
    Query,
    QueryHead,
    Refresh,
    RegisterRun,
    Resolve,
    Runs,
    Snapshot,
    Wait,
    decode_request,
    encode_request,
    frame,
    pack,
    problem_frame,
    progress_frame,
)

_MAX_WORKING = 16
_MAX_ENDING = 4
_REQUEST_TIMEOUT_S = 10.0
T = TypeVar("T")


class _ClientGone(Exception):
    """Whoever asked is no longer there."""


class Owner:
    """Serves `database` until the `async with` is left; then both it and the lock are given up."""

    def __init__(self, database: Database, lock: StoreLock) -> None:
        self.database = database
        self._lock = lock
        self._threads = ThreadPoolExecutor(_MAX_WORKING, "store")
        self._enders = ThreadPoolExecutor(_MAX_ENDING, "store-end")
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_leaving = False

    async def __aenter__(self) -> Self:
        place = paths.socket_file()
        try:
            paths.private_dir(place.parent)
            # asyncio removes what lies there: a dead owner's, as only the holder of the lock comes here.
            self._server = await asyncio.start_unix_server(self._accept, place, limit=MAX_REQUEST_BYTES)
            place.chmod(0o600)
        except BaseException:
            self._give_up()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_leaving = True
        if self._server:
            self._server.close()
            paths.socket_file().unlink(missing_ok=True)
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await asyncio.to_thread(self._give_up)

    def _give_up(self) -> None:
        self._enders.shutdown()
        self._threads.shutdown(cancel_futures=True)
        self.database.close()
        self._lock.release()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_leaving:
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
                await _Conversation(self, reader, writer).answer(line)
        except (_ClientGone, OSError):
            pass  # Nobody is left to be told.

    def in_thread(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

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
            match decode_request(line):
                case Query() as asked:
                    await self._answer_query(asked)
                case Wait():
                    await self._wait_for_the_end()
                case other:
                    work = _work(self._owner.database, other, self._progress_from(asyncio.get_running_loop()))
                    await self._send(frame(pack(await self._wait(work))))
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

    async def _answer_query(self, asked: Query) -> None:
        query = self._owner.database.running_query()
        try:
            answer = await self._wait(partial(query.start, asked.sql, asked.params, asked.timeout_s))
            await self._send(frame(pack(QueryHead(answer.columns, answer.types)), has_more=True))
            batches = answer.batches()
            while (blob := await self._wait(lambda: _packed(next(batches, None)))) is not None:
                await self._send(frame(blob, has_more=True))
            await self._send(frame(pack([])))
        finally:
            await self._owner.end(query)

    async def _wait_for_the_end(self) -> None:
        """For a session that takes over when we go: signs of life, and nothing else."""
        while not self._gone.done():
            await asyncio.wait({self._gone}, timeout=ALIVE_EVERY_S)
            await self._send(b"\n")

    async def _wait(self, work: Callable[[], T]) -> T:
        """What `work` gives, in a thread; meanwhile the client hears that we live. _ClientGone when it left."""
        future = self._owner.in_thread(work)
        either: set[asyncio.Future[Any]] = {future, self._gone}
        try:
            while True:
                await asyncio.wait(either, timeout=ALIVE_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                if future.done():
                    return future.result()
                if self._gone.done():
                    raise _ClientGone
                await self._send(b"\n")
        finally:
            if not future.done():
                future.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _packed(batch: list[Any] | None) -> bytes | None:
    return None if batch is None else pack(batch)


def _work(database: Database, request: AnyRequest, progress: Progress) -> Callable[[], Any]:
    """The operation that is asked for, ready to be done in a thread."""
    match request:
        case Panels():
            return partial(database.report, request.run_id, request.names, request.window, request.buckets)
        case Resolve():
            return partial(database.window, request.run_id, request.window)
        case Runs():
            return database.runs
        case Detail():
            return partial(database.detail, request.run_id)
        case RegisterRun():
            return partial(database.register_run, request.record)
        case Event():
            return partial(database.event, request.run_id, request.event)
        case Ingest():
            return partial(database.ingest, request.run_id, Path(request.file), shape=request.shape, progress=progress)
        case Snapshot():
            return partial(database.snapshot, Path(request.path))
        case Refresh():
            return partial(database.refresh, request.run_id)
        case _:
            raise AssertionError(request)


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to this user. The folder's mode says so too; Linux lets us ask."""
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(uid == os.getuid())


async def try_become_owner(notice: Notice, options: StoreOptions) -> Owner | None:
    """The owner, its database open and up to date, ready for `async with`; None while another process is."""
    return await asyncio.to_thread(take_ownership, notice, options)


def take_ownership(notice: Notice, options: StoreOptions) -> Owner | None:
    """As `try_become_owner`, blocking."""
    lock = StoreLock.try_take()
    if lock is None:
        return None
    try:
        return Owner(open_for_writing(notice, options), lock)
    except BaseException:
        lock.release()
        raise


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

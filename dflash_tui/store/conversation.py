"""What the owner says to one client: a request is read elsewhere, here it is answered.

Every request works in a thread with a cursor of its own, so a slow one holds up nobody, and its client hears that we
live; one whose client has gone is cancelled.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.base import Answer, IngestProgress, Progress
from dflash_tui.store.database import Database
from dflash_tui.store.frames import (
    ALIVE_EVERY_S,
    Query,
    QueryHead,
    frame,
    pack,
    problem_frame,
    progress_frame,
)
from dflash_tui.store.operations import operation
from dflash_tui.store.queries import BATCH_ROWS
from dflash_tui.store.wire import Ingest, Wait, decode_request

if TYPE_CHECKING:
    from dflash_tui.store.owner import Owner

T = TypeVar("T")


class ClientGoneError(Exception):
    """Whoever asked is no longer there."""


class Conversation:
    """One client's request and what it gets."""

    def __init__(self, owner: "Owner", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
        """Its outcome; meanwhile the client hears that we live. ClientGoneError when it left."""
        either: set[asyncio.Future[Any]] = {awaited, self._gone}
        while True:
            await asyncio.wait(either, timeout=ALIVE_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if awaited.done():
                return _result(awaited)
            if self._gone.done():
                raise ClientGoneError
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

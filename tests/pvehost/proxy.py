"""A TCP proxy on the loopback that spoils what passes it: delay, silence, reset, a cut after so many bytes."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

_PIECE = 16384
# What a slow link holds in flight. Beyond that the sender waits, as it would with TCP.
_PIECES_IN_FLIGHT = 256


class FaultProxy:
    """`delay_s` is added in each direction and the bytes keep flowing. `is_dark` keeps connections open and forwards
    nothing, as after a pulled cable. `cut_after` resets a connection once that many bytes have gone to the client."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = 0
        self.delay_s = 0.0
        self.is_dark = False
        self.is_refusing = False
        self.cut_after: int | None = None
        self.num_connections = 0
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, target: tuple[str, int]) -> AsyncIterator[Self]:
        proxy = cls(target)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            proxy.is_dark, proxy.delay_s = False, 0.0
            proxy.reset()
            if proxy._tasks:
                await asyncio.wait(proxy._tasks)

    def reset(self) -> None:
        """Cut every connection that is open, both ends at once."""
        for writer in list(self._open):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.num_connections += 1
        if self.is_refusing:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(writer)
            return
        pair = {writer, far_writer}
        self._open |= pair
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer, is_answer=False))
                group.create_task(self._pump(far_reader, writer, is_answer=True))
        except* OSError:
            pass
        finally:
            self._open -= pair
            for one in pair:
                _reset(one)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool) -> None:
        """Each piece waits for its own time, so that a delay costs no throughput."""
        loop = asyncio.get_running_loop()
        flight: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_PIECES_IN_FLIGHT)

        async def take() -> None:
            while True:
                piece = await reader.read(_PIECE)
                await flight.put((loop.time() + self.delay_s, piece))
                if not piece:
                    return

        async with asyncio.TaskGroup() as group:
            group.create_task(take())
            sent = 0
            while True:
                due, piece = await flight.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                while self.is_dark:  # noqa: ASYNC110 - tests set it, as a plain attribute
                    await asyncio.sleep(0.02)
                if not piece:
                    with suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                if is_answer and self.cut_after is not None and sent >= self.cut_after:
                    raise ConnectionResetError


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close at once and with a reset, as a dying machine's kernel does."""
    found = writer.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

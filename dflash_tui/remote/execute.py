"""A program on a host for somebody who waits: stdin in, outputs out as they come, and how it ended.

The other end is `remote/agent/execute.py`, which has the kinds of frames. What is started here ends with whoever asked.
"""

import asyncio
import json
import signal
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dflash_tui.errors import HostError, LinkLostError, TimedOutError
from dflash_tui.hosts.base import Channel, Host
from dflash_tui.remote.frames import NOISE_BYTES, READY, Frames, last_words, told
from dflash_tui.text import visible

_HEAD = struct.Struct(">cI")
_MAX_FRAME_BYTES = 1 << 24
_START_S = 30.0
# A third of what the agent waits for.
_PING_S = 30.0
# Bytes of stdin that the program has not taken yet.
_WINDOW_BYTES = 1 << 20
# After Ctrl-C: what a script gets to clean up, and what the link then gets to say so.
_GRACE_S = 5.0
_END_S = 8.0


@dataclass(frozen=True, slots=True)
class Order:
    """`env` is what the config gives; `python` the host's interpreter, whose folder comes first on PATH."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    python: str


@dataclass(frozen=True, slots=True)
class Streams:
    """Where stdin comes from (None: there is none; b"" is its end) and where the outputs go, at their own pace."""

    stdin: Callable[[], Awaitable[bytes]] | None
    stdout: Callable[[bytes], Awaitable[None]]
    stderr: Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: a code or a signal. `num_left` of its children live on, without an output."""

    code: int | None
    signal: int | None
    num_left: int


async def execute(
    host: Host, command: Sequence[str], order: Order, streams: Streams, *, timeout_s: float | None = None
) -> Ended:
    """Run it to its end. `command` starts the agent. Whatever ends this, Ctrl-C say, ends it over there as well.

    HostError if it does not start, TimedOutError after `timeout_s`, LinkLostError when the link goes.
    """
    channel = await host.start([*command, "execute"])
    said = asyncio.create_task(last_words(channel))
    try:
        execution = _Execution(host.name, channel, streams)
        try:
            await execution.begin(order)
        except (EOFError, ValueError, TimeoutError):
            words = await told(said) or "it said nothing"
            raise HostError(f"the agent on {host.name} did not start: {words}") from None
        try:
            async with asyncio.timeout(timeout_s):
                return await execution.follow()
        except TimeoutError:
            raise TimedOutError(f"what ran on {host.name} took longer than {timeout_s:g} s and was ended") from None
    finally:
        said.cancel()
        await channel.close()


class _Execution:
    def __init__(self, where: str, channel: Channel, streams: Streams) -> None:
        self._where = where
        self._channel = channel
        self._frames = Frames(channel)
        self._streams = streams
        self._window = _WINDOW_BYTES
        self._opened = asyncio.Event()
        self._head: tuple[bytes, int] | None = None

    async def begin(self, order: Order) -> None:
        async with asyncio.timeout(_START_S):
            await self._frames.until(READY, NOISE_BYTES)
        words = {
            "argv": list(order.argv),
            "cwd": order.cwd,
            "env": dict(order.env),
            "python": order.python,
            "stdin": self._streams.stdin is not None,
        }
        await self._send(b"R", json.dumps(words).encode())

    async def follow(self) -> Ended:
        """Until its end; cancelled, or when an output cannot be written, it is ended first."""
        talkers = [asyncio.create_task(self._ping())]
        if self._streams.stdin:
            talkers.append(asyncio.create_task(self._feed(self._streams.stdin)))
        try:
            return await self._listen(is_heard=True)
        except HostError:
            raise
        except BaseException as e:
            await self._end(e)
            raise
        finally:
            for task in talkers:
                task.cancel()
            await asyncio.wait(talkers)

    async def _end(self, why: BaseException) -> None:
        """Ask it to end as Ctrl-C does, or at once when asked a second time; wait for that a while."""
        with suppress(HostError, TimeoutError):
            try:
                if isinstance(why, asyncio.CancelledError):
                    await self._kill(signal.SIGINT, _GRACE_S, is_heard=True)
                else:
                    await self._kill(signal.SIGTERM, _GRACE_S, is_heard=False)
            except asyncio.CancelledError:
                await self._kill(signal.SIGKILL, 0.0, is_heard=False)
                raise

    async def _kill(self, number: int, grace_s: float, *, is_heard: bool) -> None:
        async with asyncio.timeout(_END_S):
            await self._send(b"K", json.dumps({"signal": number, "grace_s": grace_s}).encode())
            await self._listen(is_heard=is_heard)

    async def _listen(self, *, is_heard: bool) -> Ended:
        """Frames until the one that tells the end; outputs are written, or thrown away."""
        while True:
            kind, data = await self._frame()
            if kind == b"A":
                self._window += struct.unpack(">I", data)[0]
                self._opened.set()
            elif kind == b"X":
                end = json.loads(data)
                return Ended(end["code"], end["signal"], int(end["left"]))
            elif kind == b"F":
                raise HostError(f"{self._where}: {visible(data.decode('utf-8', 'replace'))}")
            elif is_heard and kind in (b"O", b"E"):
                await (self._streams.stdout if kind == b"O" else self._streams.stderr)(data)

    async def _frame(self) -> tuple[bytes, bytes]:
        """The next one. Cancelled at any moment, the same one comes again."""
        try:
            if self._head is None:
                self._head = _HEAD.unpack(await self._frames.exactly(_HEAD.size))
            kind, size = self._head
            if size > _MAX_FRAME_BYTES:
                raise HostError(f"{self._where} answered with something that is no answer")
            data = await self._frames.exactly(size)
        except (EOFError, LinkLostError):
            raise LinkLostError(
                f"the link to {self._where} was lost: what ran there is ended within 90 s, and nobody will know how"
            ) from None
        self._head = None
        return kind, data

    async def _feed(self, read: Callable[[], Awaitable[bytes]]) -> None:
        with suppress(LinkLostError):
            while data := await read():
                for begin in range(0, len(data), _WINDOW_BYTES):
                    piece = data[begin : begin + _WINDOW_BYTES]
                    while self._window < len(piece):
                        self._opened.clear()
                        await self._opened.wait()
                    self._window -= len(piece)
                    await self._send(b"I", piece)
            await self._send(b"E", b"")

    async def _ping(self) -> None:
        with suppress(LinkLostError):
            while True:
                await asyncio.sleep(_PING_S)
                await self._send(b"P", b"")

    async def _send(self, kind: bytes, data: bytes) -> None:
        await self._channel.write(_HEAD.pack(kind, len(data)) + data)

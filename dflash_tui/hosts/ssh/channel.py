"""One program on a connection: its bytes as they come, and an end that is never taken for another.

asyncssh's own streams give what they have when the connection dies, as if that were all; this says LinkLostError.
"""

import asyncio
import signal
from contextlib import suppress

import asyncssh

from dflash_tui.errors import LinkLostError
from dflash_tui.hosts.base import Exit
from dflash_tui.text import visible

# Beyond this the server has to wait until somebody reads: with the 2 MiB window, what one channel may hold here.
_BUFFER_BYTES = 1 << 20
_CLOSE_S = 0.5


class SshChannel(asyncssh.SSHClientSession[bytes]):
    """A Channel; made by asyncssh, which tells it what comes in."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._has_ended = False
        self._is_closed = False
        self._is_write_paused = False
        self._is_read_paused = False
        self._why_lost = "the server closed it"
        self._end: Exit | None = None
        self._changed = asyncio.Event()

    def connection_made(self, chan: "asyncssh.SSHClientChannel[bytes]") -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        (self._stdout if datatype is None else self._stderr).extend(data)
        if self._channel and len(self._stdout) + len(self._stderr) > _BUFFER_BYTES and not self._is_read_paused:
            self._is_read_paused = True
            self._channel.pause_reading()
        self._changed.set()

    def eof_received(self) -> bool:
        self._has_ended = True
        self._changed.set()
        return True  # Our own side stays open: the program may still be reading.

    def exit_status_received(self, status: int) -> None:
        self._end = Exit(status, None)
        self._changed.set()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._end = _signalled(signal)
        self._changed.set()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        if exc:
            self._why_lost = visible(str(exc)) or type(exc).__name__
        self._changed.set()

    async def write(self, data: bytes) -> None:
        if self._is_closed or self._channel is None:
            self._check_link()
            return
        with suppress(OSError):
            self._channel.write(data)
        while self._is_write_paused and not self._is_closed and self._end is None:
            await self._change()
        if self._is_closed:
            self._check_link()

    async def write_eof(self) -> None:
        if self._channel and not self._is_closed:
            with suppress(OSError):
                self._channel.write_eof()

    async def read(self, max_bytes: int) -> bytes:
        return await self._take(self._stdout, max_bytes)

    async def read_error(self, max_bytes: int) -> bytes:
        return await self._take(self._stderr, max_bytes)

    async def wait(self) -> Exit:
        while self._end is None:
            if self._is_closed:
                self._check_link()
            await self._change()
        return self._end

    async def close(self) -> None:
        if self._channel is None or self._is_closed:
            return
        self._channel.close()
        # The server counts it until it has answered; one that is silent is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._channel.wait_closed()

    async def _take(self, buffer: bytearray, max_bytes: int) -> bytes:
        while not buffer:
            if self._has_ended:
                return b""
            if self._is_closed:
                self._check_link()
                return b""
            await self._change()
        taken = bytes(buffer[:max_bytes])
        del buffer[:max_bytes]
        if self._is_read_paused and self._channel and len(self._stdout) + len(self._stderr) <= _BUFFER_BYTES // 2:
            self._is_read_paused = False
            self._channel.resume_reading()
        return taken

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _check_link(self) -> None:
        """Of a channel that is closed: nothing, if the program has ended and told how."""
        if self._end is None:
            raise lost(self._host, self._why_lost)


def lost(host: str, why: str) -> LinkLostError:
    return LinkLostError(f"the link to {host} was lost ({why}): what runs there goes on; try again")


def _signalled(name: str) -> Exit:
    with suppress(KeyError):
        return Exit(None, int(signal.Signals[f"SIG{name}"]))
    # Of some OpenSSH says only that it was one ("SIG@openssh.com"): what a shell adds the number to.
    return Exit(128, None)

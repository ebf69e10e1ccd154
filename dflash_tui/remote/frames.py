"""What an agent says, cut as its reader wants; and the words of one that said nothing more."""

import asyncio
from contextlib import suppress

from dflash_tui.errors import LinkLostError
from dflash_tui.hosts.base import READ_BYTES, Channel
from dflash_tui.text import visible

# What comes before it is none of the agent's. Its first word, however it was started.
READY = b"\n@dflash-agent ready\n"
NOISE_BYTES = 1 << 16
# Nothing of the machine's Python is loaded, and paths are UTF-8 whatever its locale is.
FLAGS = ("-I", "-S", "-X", "utf8")


class Frames:
    """Bytes of a channel's stdout, cut as its reader wants. EOFError when they end too early."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pending = bytearray()

    async def until(self, mark: bytes, max_bytes: int) -> bytes:
        """What comes before `mark`; ValueError if that is more than `max_bytes`."""
        searched = 0
        while (at := self._pending.find(mark, searched)) < 0:
            searched = max(0, len(self._pending) - len(mark))
            if len(self._pending) > max_bytes:
                raise ValueError(f"no end within {max_bytes} bytes")
            await self._more()
        return self._take(at, at + len(mark))

    async def exactly(self, size: int) -> bytes:
        while len(self._pending) < size:
            await self._more()
        return self._take(size, size)

    async def _more(self) -> None:
        data = await self._channel.read(READ_BYTES)
        if not data:
            raise EOFError
        self._pending += data

    def _take(self, size: int, drop: int) -> bytes:
        taken = bytes(self._pending[:size])
        del self._pending[:drop]
        return taken


async def last_words(channel: Channel) -> str:
    """Read stderr to its end, so that nothing stalls; its last line."""
    tail = b""
    with suppress(LinkLostError):
        while data := await channel.read_error(READ_BYTES):
            tail = (tail + data)[-4096:]
    lines = tail.decode("utf-8", "replace").strip().splitlines()
    return visible(lines[-1][:300]) if lines else ""


async def told(said: asyncio.Task[str]) -> str:
    """What `last_words` came to, of a program that has just ended; "" if it does not end."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(asyncio.shield(said), 1)
    return ""

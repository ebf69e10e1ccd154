"""What every host can do: start a program there, put a file there. Moves bytes; knows no run, trainer or database.

Words travel as an argv list. A host that must hand them to a shell joins them once, itself, with shlex.join; user
text never becomes part of a program. Programs travel on stdin or as a file that was put.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dflash_tui.errors import HostError, TimedOutError
from dflash_tui.text import visible

READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: by itself with a code, or by a signal. One of the two is None."""

    code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Completed:
    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes


class Channel(Protocol):
    """A started program: bytes in, bytes out, an exit status.

    A link that is lost is a LinkLostError from every method but `close`, never a short answer or a silent end.
    """

    async def write(self, data: bytes) -> None:
        """Hand bytes to the program's stdin. No error if it has stopped reading: its exit status will tell."""

    async def write_eof(self) -> None: ...

    async def read(self, max_bytes: int) -> bytes:
        """Some bytes of stdout, as soon as there are any; b"" at its end."""

    async def read_error(self, max_bytes: int) -> bytes:
        """The same for stderr. Somebody must read it, or a talkative program stalls."""

    async def wait(self) -> Exit: ...

    async def close(self) -> None:
        """Let go at once. Where the host can, a program that still runs is killed; what it detached lives on.

        Over a link it cannot: there, whoever reads ends at the end of its stdin, and whoever is silent stays.
        """


class Host(Protocol):
    name: str

    async def start(self, argv: Sequence[str], *, is_brief: bool = False) -> Channel:
        """Start a program, with no terminal. UnreachableError without a link.

        HostError if it is not there; a host that learns that too late lets it end with code 127. `is_brief` says that
        it ends soon by itself: what may stay for hours gets a place that is kept free for the brief ones.
        """

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
        """Run a program to its end and keep all it said. TimedOutError after `timeout_s`; errors as in `start`."""

    async def put(self, data: bytes, path: str, mode: int = 0o600) -> None:
        """Make `path` hold `data`, whole or not at all. Its folder must be there."""

    async def close(self) -> None: ...


def unwritable(name: str, path: str, why: str) -> HostError:
    """The sentence for a file that cannot be put on `name`; `why` is what the machine said."""
    found = next((cure for words, cure in _CURES.items() if words in why), "")
    return HostError(f"cannot write {visible(path)} on {name}: {why}{found}")


_CURES = {
    "No space left on device": "; make room there",
    "Disk quota exceeded": "; make room there",
    "Read-only file system": "; choose another workdir, or mount it writable",
    "Permission denied": "; choose another workdir, or give this user the right to write there",
}


async def complete(channel: Channel, what: str, *, stdin: bytes, timeout_s: float) -> Completed:
    """`Host.run` for any channel: feed stdin, keep both outputs to their last byte, then ask how it ended."""
    try:
        async with asyncio.timeout(timeout_s):
            # All three at once: a program that fills one pipe while we watch another would wait for ever.
            _, stdout, stderr = await asyncio.gather(
                _feed(channel, stdin), _drain(channel.read), _drain(channel.read_error)
            )
            end = await channel.wait()
    except TimeoutError:
        raise TimedOutError(f"{what} took longer than {timeout_s:g} s") from None
    finally:
        await channel.close()
    return Completed(end.code, end.signal, stdout, stderr)


async def _feed(channel: Channel, stdin: bytes) -> None:
    await channel.write(stdin)
    await channel.write_eof()


async def _drain(read: Callable[[int], Awaitable[bytes]]) -> bytes:
    pieces = []
    while piece := await read(READ_BYTES):
        pieces.append(piece)
    return b"".join(pieces)

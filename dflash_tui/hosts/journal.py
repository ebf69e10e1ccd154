"""What was run on hosts: every argv, where, when, how it ended and how long it took. In memory, the newest alone.

Hosts tell it, a screen asks it. What looks like a secret is masked before it is kept, and no word is kept whole that
could be a file.
"""

import time
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from dflash_tui.errors import DflashError
from dflash_tui.hosts.base import Channel, Exit
from dflash_tui.hosts.shell import readable
from dflash_tui.masking import masked

NUM_KEPT = 500
_MAX_WORDS = 100
_MAX_CHARACTERS = 1000


@dataclass(slots=True)
class Command:
    """One program on one host. `time` is unix time, `began` monotonic; while it runs, `took_s` is None.

    `end` is None where nobody learned it: whoever asked had left. `trouble` is why it did not start, or lost its link.
    """

    number: int
    host: str
    argv: tuple[str, ...]
    time: float
    began: float
    took_s: float | None = None
    end: Exit | None = None
    trouble: str | None = None

    def note(self, end: Exit | None = None, trouble: str | None = None) -> None:
        """It is over. What was noted first stays."""
        if self.took_s is None:
            self.took_s, self.end, self.trouble = time.monotonic() - self.began, end, trouble


_commands: deque[Command] = deque(maxlen=NUM_KEPT)
_num_begun = 0


def commands() -> list[Command]:
    """The newest commands of this process, oldest first."""
    return list(_commands)


async def noted(host: str, argv: Sequence[str], starting: Awaitable[Channel]) -> Channel:
    """The channel that `starting` gives; that it was started, and its end, are noted."""
    command = _begin(host, argv)
    try:
        return _NotedChannel(await starting, command)
    except DflashError as e:
        command.note(trouble=str(e))
        raise
    except BaseException:
        command.note(trouble="whoever asked for it left")
        raise


def _begin(host: str, argv: Sequence[str]) -> Command:
    global _num_begun
    _num_begun += 1
    words = masked(readable(argv))
    shown = [word if len(word) <= _MAX_CHARACTERS else f"{word[:_MAX_CHARACTERS]}..." for word in words[:_MAX_WORDS]]
    more = [f"... and {len(words) - _MAX_WORDS} words more"] if len(words) > _MAX_WORDS else []
    command = Command(_num_begun, host, (*shown, *more), time.time(), time.monotonic())
    _commands.append(command)
    return command


class _NotedChannel:
    def __init__(self, channel: Channel, command: Command) -> None:
        self._channel = channel
        self._command = command
        self.read = channel.read
        self.read_error = channel.read_error
        self.write = channel.write
        self.write_eof = channel.write_eof

    async def wait(self) -> Exit:
        try:
            end = await self._channel.wait()
        except DflashError as e:
            self._command.note(trouble=str(e))
            raise
        self._command.note(end)
        return end

    async def close(self) -> None:
        try:
            await self._channel.close()
        finally:
            self._command.note()

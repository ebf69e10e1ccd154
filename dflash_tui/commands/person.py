"""The person at the terminal, for what a host must not decide alone: whether a key is right, what opens a private key.

Reads /dev/tty in the event loop and not in a thread: Ctrl-C ends a question like everything else.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from dflash_tui.hosts.person import HostKey
from dflash_tui.text import visible

_LINE_BYTES = 4096


def is_there() -> bool:
    """Whether somebody reads what we say and can answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class TerminalPerson:
    """Asks one thing at a time, whoever wants to know."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def trusts(self, key: HostKey) -> bool:
        answer = await self._ask(
            f"The host key of {visible(key.where)} is not known yet:\n  {key.kind} {key.fingerprint}\n"
            "Is that the one it has, by what you know of it? It is remembered. Type yes or no: "
        )
        return answer == "yes"

    async def passphrase(self, key_file: str, *, is_repeated: bool) -> str | None:
        wrong = "That does not open it. " if is_repeated else ""
        return (
            await _ask(f"{wrong}Passphrase of {visible(key_file)} (empty: go on without it): ", is_secret=True) or None
        )

    async def _ask(self, question: str, *, is_secret: bool = False) -> str:
        async with self._turn:
            return await _ask(question, is_secret=is_secret)


async def _ask(question: str, *, is_secret: bool) -> str:
    """The line that is typed; "" at an end of file, or without a terminal after all."""
    loop = asyncio.get_running_loop()
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return ""
    typed: asyncio.Future[bytes] = loop.create_future()
    try:
        with _echo_off(fd, is_secret):
            os.write(fd, question.encode("utf-8", "backslashreplace"))

            def take() -> None:
                # A terminal hands out whole lines.
                loop.remove_reader(fd)
                typed.set_result(os.read(fd, _LINE_BYTES))

            loop.add_reader(fd, take)
            try:
                line = await typed
            finally:
                loop.remove_reader(fd)
        if is_secret:
            os.write(fd, b"\n")
    finally:
        os.close(fd)
    return line.decode("utf-8", "replace").rstrip("\r\n")


@contextmanager
def _echo_off(fd: int, is_secret: bool) -> Iterator[None]:
    if not is_secret:
        yield
        return
    before = termios.tcgetattr(fd)
    silent = [*before]
    silent[3] = int(silent[3]) & ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSAFLUSH, silent)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)

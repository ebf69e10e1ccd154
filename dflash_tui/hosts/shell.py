"""What we say to a shell on the way: an argv that every login shell takes for the same, and how a file is written.

The programs here are constants. Words reach them as arguments in an alphabet that sh, csh and fish read alike: fish
takes `\\\\` and `\\'` in single quotes for escapes, csh expands `!` there and ends at a newline, zsh expands `=word`.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Sequence

from dflash_tui.errors import HostError
from dflash_tui.hosts.base import READ_BYTES, Channel, Completed, Exit, Host, unwritable
from dflash_tui.text import visible

# What comes before it was not said by the program, but by start-up files of a login shell. No such file prints a NUL,
# and the command line, which `set -x` prints, holds none either.
MARK = b"\0dflash\0"
# Undoes `_spelled` for each word, then becomes the program. No quote, no `!`, no newline, no backslash before either:
# it must itself be read alike.
_START = (
    'for w do v=$(printf %b. "$w"); shift; set -- "$@" "${v%.}"; done; '
    'printf "\\000dflash\\000" >&2; printf "\\000dflash\\000"; exec "$@"'
)
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/.,:+-")
_NOISE_BYTES = 1 << 20
# A put may take this long, and its bytes no longer than over a bad mobile link.
PUT_S = 60.0
SLOWEST_BYTES_PER_S = 50_000
# A program that is told to end may leave its pipes to a child.
_LAST_WORDS_S = 2.0

# Words: path, part, mode, size. The part is beside the path, so that the rename is one step; a link that is cut ends
# stdin as an end of file does, so the size decides, and nobody is left to hear an echo.
WRITE = """
trap '' HUP PIPE
set -C
umask 077
[ -d "$1" ] && { echo "Is a directory" >&2; exit 1; }
trap 'rm -f -- "$2"' EXIT
cat >"$2" || exit 1
[ "$(wc -c <"$2")" -eq "$4" ] || { echo "not all of it arrived" >&2; exit 1; }
chmod "$3" "$2" && { sync "$2" 2>/dev/null || :; } && mv -f "$2" "$1"
"""
# Words: path, part, mode, sha256. For a part that somebody else has put there.
ACCEPT = """
trap '' HUP PIPE
trap 'rm -f -- "$2"' EXIT
[ -d "$1" ] && { echo "Is a directory" >&2; exit 1; }
[ "$(sha256sum <"$2")" = "$4  -" ] || { echo "not all of it arrived" >&2; exit 1; }
chmod "$3" "$2" && { sync "$2" 2>/dev/null || :; } && mv -f "$2" "$1"
"""


def portable(argv: Sequence[str]) -> list[str]:
    """`argv` as an argv of plain ASCII that starts it and says MARK on both outputs right before."""
    return ["/bin/sh", "-c", _START, "sh", *(_spelled(word, argv[0]) for word in argv)]


def readable(argv: Sequence[str]) -> list[str]:
    """`argv` as a person would say it: what `portable` was given, also where it stands behind words of pct."""
    head = portable(["true"])[:-1]
    for place in range(len(argv) - len(head)):
        if list(argv[place : place + len(head)]) == head:
            return [*argv[:place], *map(_read, argv[place + len(head) :])]
    return list(argv)


def program(text: str, *words: str) -> list[str]:
    """A shell program of ours with its words, as an argv."""
    return ["/bin/sh", "-c", text, "sh", *words]


def part_beside(path: str) -> str:
    """A name that nobody can guess, in the folder of `path`."""
    return f"{path[: path.rfind('/') + 1] or './'}.{secrets.token_hex(8)}.part"


def anchored(path: str) -> str:
    """`path` so that no program takes it for an option."""
    return path if path.startswith("/") else f"./{path}"


def last_line(words: bytes) -> str:
    """The last thing that was said, fit for a sentence; "" if nothing was."""
    lines = words.decode("utf-8", "replace").strip().splitlines()
    return visible(lines[-1].strip()[:300]) if lines else ""


def _spelled(word: str, command: str) -> str:
    raw = os.fsencode(word)
    if b"\0" in raw:
        raise HostError(f"an argument of {command} holds a NUL character: no program can be given that")
    return "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in raw)


def _read(word: str) -> str:
    raw = re.sub(rb"\\0([0-7]{3})", lambda found: bytes([int(found[1], 8)]), word.encode())
    return raw.decode("utf-8", "surrogateescape")


async def put_by_stdin(host: Host, data: bytes, path: str, mode: int) -> None:
    """`Host.put` for a host that can run programs."""
    argv = program(WRITE, anchored(path), anchored(part_beside(path)), f"{mode:o}", str(len(data)))
    done = await host.run(argv, stdin=data, timeout_s=PUT_S + len(data) / SLOWEST_BYTES_PER_S)
    if done.code != 0:
        raise cannot_write(host.name, path, done)


def cannot_write(name: str, path: str, done: Completed) -> HostError:
    """The sentence for a program of ours that failed to write: what the machine said last of it."""
    why = last_line(done.stderr).rpartition(": ")[2] or f"exit code {done.code}, signal {done.signal}"
    return unwritable(name, path, why)


class NotStartedError(Exception):
    """The channel ended before MARK: what was said instead, and how it ended."""

    def __init__(self, stdout: bytes, stderr: bytes, end: Exit) -> None:
        super().__init__(last_line(stderr) or last_line(stdout))
        self.words = (stdout + b"\n" + stderr).decode("utf-8", "replace")
        self.end = end


class StartedChannel:
    """A channel of `portable` words, from MARK on: what came before it is dropped from both outputs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stdout = b""
        self._stderr = b""
        self._is_error_marked = False

    async def begin(self) -> None:
        """Until the program runs; NotStartedError if it never does, and whatever `read` raises."""
        while MARK not in self._stdout:
            piece = await self._channel.read(READ_BYTES)
            self._stdout += piece
            if not piece or len(self._stdout) > _NOISE_BYTES:
                raise await self._failure()
        _, _, self._stdout = self._stdout.partition(MARK)

    def noise(self) -> str:
        """What was said so far instead of MARK, for who has lost patience."""
        return last_line(self._stdout)

    async def _failure(self) -> NotStartedError:
        end = Exit(None, None)
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                while piece := await self._channel.read_error(READ_BYTES):
                    self._stderr = (self._stderr + piece)[-_NOISE_BYTES:]
                end = await self._channel.wait()
        except TimeoutError:
            pass
        return NotStartedError(self._stdout, self._stderr, end)

    async def read(self, max_bytes: int) -> bytes:
        if self._stdout:
            piece, self._stdout = self._stdout[:max_bytes], self._stdout[max_bytes:]
            return piece
        return await self._channel.read(max_bytes)

    async def read_error(self, max_bytes: int) -> bytes:
        while not self._is_error_marked:
            piece = await self._channel.read_error(READ_BYTES)
            self._stderr += piece
            noise, mark, rest = self._stderr.partition(MARK)
            # Without a mark somebody has sent stderr elsewhere: then what is here is all there will be.
            self._is_error_marked = bool(mark) or not piece or len(noise) > _NOISE_BYTES
            self._stderr = rest if mark else self._stderr
        if self._stderr:
            piece, self._stderr = self._stderr[:max_bytes], self._stderr[max_bytes:]
            return piece
        return await self._channel.read_error(max_bytes)

    async def write(self, data: bytes) -> None:
        await self._channel.write(data)

    async def write_eof(self) -> None:
        await self._channel.write_eof()

    async def wait(self) -> Exit:
        return await self._channel.wait()

    async def close(self) -> None:
        await self._channel.close()

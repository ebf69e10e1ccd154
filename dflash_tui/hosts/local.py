"""This machine as a host: plain child processes, each in its own session so that Ctrl-C here does not reach them."""

import asyncio
import os
import secrets
import signal
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError
from dflash_tui.hosts.base import READ_BYTES, Channel, Completed, Exit, complete, unwritable
from dflash_tui.hosts.journal import noted


class LocalHost:
    def __init__(self, spec: HostSpec) -> None:
        self.name = spec.name

    async def start(self, argv: Sequence[str], *, is_brief: bool = False) -> Channel:
        return await noted(self.name, argv, self._start(argv))

    async def _start(self, argv: Sequence[str]) -> Channel:
        loop = asyncio.get_running_loop()
        if any("\0" in word for word in argv):
            raise HostError(f"an argument of {argv[0]} holds a NUL character: no program can be given that")
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Streams(loop), *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except OSError as e:
            raise HostError(f"cannot start {argv[0]} on {self.name}: {e.strerror}") from e
        return LocalChannel(transport, protocol)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
        return await complete(await self.start(argv), f"{argv[0]} on {self.name}", stdin=stdin, timeout_s=timeout_s)

    async def put(self, data: bytes, path: str, mode: int = 0o600) -> None:
        try:
            await asyncio.to_thread(_write_whole, data, Path(path), mode)
        except OSError as e:
            raise unwritable(self.name, path, str(e.strerror)) from e

    async def close(self) -> None:
        pass


class _Streams(SubprocessStreamProtocol):
    """asyncio's own stream protocol, which also tells an exit from the end of the pipes.

    Process.wait() tells them apart only from Python 3.12 on: before, a detached grandchild that holds a pipe open
    keeps it waiting.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=READ_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        # Who waited for the end of stdin may have been cancelled, and asyncio's own future with it.
        with suppress(asyncio.InvalidStateError):
            super().pipe_connection_lost(fd, exc)


class LocalChannel:
    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        self._transport = transport
        self._exited = streams.exited
        assert streams.stdin and streams.stdout and streams.stderr
        self._stdin, self._stdout, self._stderr = streams.stdin, streams.stdout, streams.stderr

    async def write(self, data: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._stdin.write(data)
            await self._stdin.drain()

    async def write_eof(self) -> None:
        self._stdin.close()
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.wait_closed()

    async def read(self, max_bytes: int) -> bytes:
        return await self._stdout.read(max_bytes)

    async def read_error(self, max_bytes: int) -> bytes:
        return await self._stderr.read(max_bytes)

    async def wait(self) -> Exit:
        await self._exited.wait()
        code = self._transport.get_returncode()
        assert code is not None
        return Exit(code, None) if code >= 0 else Exit(None, -code)

    async def close(self) -> None:
        if self._transport.get_returncode() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            await self._exited.wait()
        self._transport.close()


def _write_whole(data: bytes, path: Path, mode: int) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""A machine over SSH. The only place that imports asyncssh, and only once there is something to say to such a machine.

One connection to a machine is shared by all who use it here; programs are started on it, files are written by a
program that reads them from its stdin: one round trip to start it and one for the answer, where SFTP takes eight,
and a start-up file that prints something breaks SFTP but not this.
"""

import asyncio
import shlex
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, UnreachableError
from dflash_tui.hosts.base import Channel, Completed, complete
from dflash_tui.hosts.journal import noted
from dflash_tui.hosts.shell import NotStartedError, StartedChannel, portable, put_by_stdin
from dflash_tui.hosts.ssh.address import parse_address

if TYPE_CHECKING:
    from dflash_tui.hosts.ssh.pool import Pool

# From the server's yes to the program's first instruction: the time that start-up files of a login shell may take.
START_S = 15.0
# The kernel takes no longer word (MAX_ARG_STRLEN), and the whole line is one word for the login shell.
_MAX_LINE_BYTES = 128 * 1024 - 1


class SshHost:
    """`spec.address` says where; ~/.ssh/config and the agent say how. Nothing is connected before the first use."""

    def __init__(self, spec: HostSpec) -> None:
        self.name = spec.name
        self._address = parse_address(spec.address or "", f"hosts.{spec.name}.address")
        self._pool: Pool | None = None

    async def start(self, argv: Sequence[str], *, is_brief: bool = False) -> Channel:
        return await noted(self.name, argv, self._start(argv, is_brief=is_brief))

    async def _start(self, argv: Sequence[str], *, is_brief: bool) -> Channel:
        line = shlex.join(["exec", *portable(argv)])
        if len(line) > _MAX_LINE_BYTES:
            raise HostError(f"the arguments of {argv[0]} on {self.name} are too long for a command: put them in a file")
        pool = await self._join()
        channel = StartedChannel(await pool.open(line, self.name, is_brief=is_brief))
        try:
            async with asyncio.timeout(START_S):
                await channel.begin()
        except TimeoutError:
            await channel.close()
            said = channel.noise() or "nothing"
            raise UnreachableError(
                f"{self.name}: the login shell started nothing within {START_S:g} s and said {said}:"
                " look at its start-up files, .bashrc or the like"
            ) from None
        except NotStartedError as e:
            await channel.close()
            how = f"exit code {e.end.code}" if e.end.code is not None else f"signal {e.end.signal}"
            raise UnreachableError(
                f"{self.name}: the login shell did not start our program ({e.args[0] or 'it said nothing'}, {how}):"
                " give this user a shell like sh, csh or fish, and start-up files that do not end it"
            ) from e
        except BaseException:
            await channel.close()
            raise
        return channel

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
        channel = await self.start(argv, is_brief=True)
        return await complete(channel, f"{argv[0]} on {self.name}", stdin=stdin, timeout_s=timeout_s)

    async def put(self, data: bytes, path: str, mode: int = 0o600) -> None:
        await put_by_stdin(self, data, path, mode)

    async def close(self) -> None:
        """Leave the connection to whoever else uses it; the last one closes it."""
        if self._pool:
            from dflash_tui.hosts.ssh.pool import leave

            pool, self._pool = self._pool, None
            await leave(pool)

    async def _join(self) -> "Pool":
        if self._pool is None:
            # 0.17 s, in a thread: the screen goes on.
            module = await asyncio.to_thread(import_module, "dflash_tui.hosts.ssh.pool")
            self._pool = self._pool or module.join(self._address)
        return self._pool

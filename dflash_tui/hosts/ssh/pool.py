"""The connections to one machine, shared by all who use it: how many programs each may carry, when another is opened.

A server takes 10 sessions on a connection by default (MaxSessions), some fewer, and tells nobody: what it refuses is
learned. It drops what connects beyond 10 at once (MaxStartups).
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import asyncssh

from dflash_tui.errors import DflashError, LinkLostError, UnreachableError
from dflash_tui.hosts.ssh.address import Address
from dflash_tui.hosts.ssh.channel import SshChannel, lost
from dflash_tui.hosts.ssh.connect import connect
from dflash_tui.text import visible

MAX_CHANNELS = 8
# Two places of each connection are kept for what is brief.
MAX_LASTING = 6
MAX_CONNECTS = 8
_MAX_LINKS = 16
_OPEN_S = 20.0
_CLOSE_S = 2.0
# How long a server may take to clear away what has ended, and how often it is asked.
_CLEARED_S, _AGAIN_S = 2.0, 0.05
# Of open-failure reasons: "administratively prohibited" (by name 1), "connect failed" (2, what OpenSSH says at its
# limit) and "resource shortage" (4).
_FULL = (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_CONNECT_FAILED, asyncssh.OPEN_RESOURCE_SHORTAGE)

# asyncssh's own word for a channel that it did not even ask for, on a connection that has just gone.
_CLOSED = "SSH connection closed"


class _Link:
    """One connection and how many programs it carries."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection
        self.capacity = MAX_CHANNELS
        self.num_open = 0
        self.num_lasting = 0
        self.has_carried = False

    def has_room(self, *, is_brief: bool) -> bool:
        return self.num_open < self.capacity and (is_brief or self.num_lasting < MAX_LASTING)


class Pool:
    """Connections to one address. Lives as long as somebody uses it."""

    def __init__(self, address: Address) -> None:
        self.num_users = 0
        self._address = address
        self._links: list[_Link] = []
        self._growth: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()

    @property
    def num_connections(self) -> int:
        return len(self._links)

    async def open(self, command: str, name: str, *, is_brief: bool) -> "PooledChannel":
        """A program that was started on a connection with room for it. `name` is who asks, for the sentences."""
        deadline = time.monotonic() + _CLEARED_S
        while True:
            link = await self._link(name, is_brief=is_brief)
            release = partial(self._release, link, is_brief=is_brief)
            link.num_open += 1
            link.num_lasting += not is_brief
            try:
                channel = await _open(link.connection, command, name)
                link.has_carried = True
                return PooledChannel(channel, release)
            except _StaleError:
                # It died unnoticed, before anything was started on it: that is no one's loss.
                release()
                link.connection.abort()
                self._links = [one for one in self._links if one is not link]
            except _FullError:
                release()
                if link.num_open > 0:
                    link.capacity = link.num_open
                elif link.has_carried and time.monotonic() < deadline:
                    # What has just ended here the server has still to clear away.
                    await asyncio.sleep(_AGAIN_S)
                else:
                    raise UnreachableError(
                        f"{name}: its SSH server starts no program for us: allow sessions for this user (MaxSessions)"
                    ) from None
            except BaseException:
                release()
                raise

    def _release(self, link: _Link, *, is_brief: bool) -> None:
        link.num_open -= 1
        link.num_lasting -= not is_brief
        self._freed.set()

    async def _link(self, name: str, *, is_brief: bool) -> _Link:
        while True:
            self._links = [link for link in self._links if not link.connection.is_closed()]
            for link in self._links:
                if link.has_room(is_brief=is_brief):
                    return link
            # What is brief waits for what is brief; another connection is for what stays.
            can_wait = is_brief and any(link.num_lasting < link.capacity for link in self._links)
            if can_wait or len(self._links) >= _MAX_LINKS:
                self._freed.clear()
                await self._freed.wait()
            else:
                await self._grow(name)

    async def _grow(self, name: str) -> None:
        """One connection more. Who comes while one is made waits for that one, and shares its failure."""
        if self._growth is None:
            self._growth = asyncio.create_task(self._connect())
            # Whoever waited may be gone: then nobody else looks at what became of it.
            self._growth.add_done_callback(lambda done: done.cancelled() or done.exception())
        growth = self._growth
        try:
            await asyncio.shield(growth)
        except DflashError as e:
            raise type(e)(f"{name}: {e}") from e

    async def _connect(self) -> None:
        try:
            async with _connects():
                self._links.append(_Link(await connect(self._address)))
        finally:
            self._growth = None

    async def close(self) -> None:
        if self._growth:
            self._growth.cancel()
            await asyncio.wait({self._growth})
        links, self._links = self._links, []
        for link in links:
            link.connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.gather(*(link.connection.wait_closed() for link in links))
        for link in links:
            link.connection.abort()


class _FullError(Exception):
    pass


class _StaleError(Exception):
    pass


async def _open(connection: asyncssh.SSHClientConnection, command: str, name: str) -> SshChannel:
    channel = SshChannel(name)
    opening = asyncio.ensure_future(
        connection.create_session(lambda: channel, command, encoding=None, request_pty=False)
    )
    try:
        async with asyncio.timeout(_OPEN_S):
            await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The server may have started it: it must not stay there with nobody at its other end.
        opening.add_done_callback(_discard)
        raise
    except TimeoutError:
        opening.add_done_callback(_discard)
        connection.abort()
        raise LinkLostError(f"{name} did not start a program within {_OPEN_S:g} s: try again") from None
    except asyncssh.ChannelOpenError as e:
        is_closed = connection.is_closed() or e.reason == _CLOSED
        if is_closed and e.code == asyncssh.OPEN_REQUEST_SESSION_FAILED:
            # The program may have been started.
            raise lost(name, visible(e.reason)) from e
        if is_closed:
            raise _StaleError from e
        if e.code in _FULL:
            raise _FullError from e
        raise UnreachableError(f"{name}: its SSH server starts no program for us ({visible(e.reason)})") from e
    except (asyncssh.Error, OSError) as e:
        raise lost(name, visible(str(e))) from e
    return channel


def _discard(opening: asyncio.Task[tuple[Any, Any]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].close()


class PooledChannel:
    """A channel that gives its place back once, when it is closed."""

    def __init__(self, channel: SshChannel, release: Callable[[], None]) -> None:
        self._channel = channel
        self._release: Callable[[], None] | None = release
        self.read = channel.read
        self.read_error = channel.read_error
        self.write = channel.write
        self.write_eof = channel.write_eof
        self.wait = channel.wait

    async def close(self) -> None:
        try:
            await self._channel.close()
        finally:
            release, self._release = self._release, None
            if release:
                release()


_Loop = asyncio.AbstractEventLoop
_pools: WeakKeyDictionary[_Loop, dict[Address, Pool]] = WeakKeyDictionary()
_semaphores: WeakKeyDictionary[_Loop, asyncio.Semaphore] = WeakKeyDictionary()


def join(address: Address) -> Pool:
    """The pool of this address on the running loop, with one user more; `leave` it again."""
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    pool = pools.setdefault(address, Pool(address))
    pool.num_users += 1
    return pool


async def leave(pool: Pool) -> None:
    """One user less; the last one closes the connections."""
    pool.num_users -= 1
    if pool.num_users == 0:
        pools = _pools[asyncio.get_running_loop()]
        for address in [address for address, one in pools.items() if one is pool]:
            del pools[address]
        await pool.close()


def _connects() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    return _semaphores.setdefault(loop, asyncio.Semaphore(MAX_CONNECTS))

"""A Proxmox container over the host that holds it, whatever kind that is: `pct` before every argv, and its traps.

pct push exits 0 whatever happened, so what arrived is hashed inside. pct reads its words in the locale of the host, so
they are plain ASCII; a path that is not takes the other way, by stdin. A frozen container answers nothing and counts
as running, so every start has its time.
"""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from dflash_tui.config import LOCAL, HostSpec
from dflash_tui.errors import HostError, LinkLostError, TimedOutError, UnreachableError
from dflash_tui.hosts.base import Channel, Completed, Host, complete
from dflash_tui.hosts.containers import Container, read_cluster, read_list
from dflash_tui.hosts.local import LocalHost
from dflash_tui.hosts.shell import (
    ACCEPT,
    NotStartedError,
    StartedChannel,
    anchored,
    cannot_write,
    last_line,
    part_beside,
    portable,
    program,
    put_by_stdin,
)
from dflash_tui.hosts.ssh import SshHost

# Absolute: without a login shell, a PATH holds no sbin for most users.
_PCT = "/usr/sbin/pct"
_PVESH = "/usr/bin/pvesh"
_LXC_INFO = "/usr/bin/lxc-info"
# pct itself takes up to half a second on a real host, and more on a busy one.
START_S = 20.0
_ASK_S = 20.0
# pct waits 10 s for its lock.
_PUSH_S = 60.0
_SLOWEST_BYTES_PER_S = 1_000_000
_PUSHABLE = re.compile(r"/[!-~ ]*")
# Where staged files lie. What a cut link has left there goes a day later.
_HOME = "cd && pwd -P && find . -maxdepth 1 -name '.dflash-stage-*' -mtime +0 -exec rm -f {} +"


def nodes_own_host(spec: HostSpec) -> Host:
    """The host that holds the container of `spec`: this machine, or one over SSH."""
    if spec.address == LOCAL:
        return LocalHost(HostSpec(kind="local", name=spec.name))
    return SshHost(HostSpec(kind="ssh", name=spec.name, address=spec.address))


class ProxmoxHost:
    """Container `spec.vmid` on the node at `spec.address`. Programs run as its root, in no login environment."""

    def __init__(self, spec: HostSpec, node: Host | None = None) -> None:
        assert spec.vmid
        self.name = spec.name
        self._vmid = spec.vmid
        self._where = f"container {spec.vmid} on {spec.address}"
        self._node = node or nodes_own_host(spec)
        self._root = ["sudo", "-n"] if spec.sudo else []
        self._home: str | None = None

    async def start(self, argv: Sequence[str], *, is_brief: bool = False) -> Channel:
        words = self._pct("exec", str(self._vmid), "--keep-env", "0", "--", *portable(argv))
        try:
            channel = StartedChannel(await self._node.start(words, is_brief=is_brief))
        except UnreachableError:
            raise
        except HostError as e:
            raise await self._refusal(str(e)) from e
        try:
            async with asyncio.timeout(START_S):
                await channel.begin()
        except TimeoutError:
            await channel.close()
            raise await self._silence() from None
        except NotStartedError as e:
            await channel.close()
            raise await self._refusal(e.words) from None
        except BaseException:
            await channel.close()
            raise
        return channel

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
        channel = await self.start(argv, is_brief=True)
        return await complete(channel, f"{argv[0]} on {self.name}", stdin=stdin, timeout_s=timeout_s)

    async def put(self, data: bytes, path: str, mode: int = 0o600) -> None:
        # By push first: no container's shell has to be fast for it. Where that fails, for whatever reason, the other
        # way either works or says why not, which push does not.
        if _PUSHABLE.fullmatch(path) and await self._push(data, path, mode):
            return
        await put_by_stdin(self, data, path, mode)

    async def close(self) -> None:
        await self._node.close()

    async def containers(self) -> list[Container]:
        """Those of the whole cluster, this node's first. HostError if the node cannot be asked."""
        listed, known = await asyncio.gather(
            self._ask(self._pct("list")), self._ask_quietly([*self._root, _PVESH, *_CLUSTER])
        )
        here = read_list(listed.stdout)
        ids = {one.vmid for one in here}
        return here + [one for one in read_cluster(known) if one.vmid not in ids]

    async def container(self) -> Container:
        """This one, with the status "frozen" where it is; UnreachableError if it is not on its node."""
        found = next((one for one in await self.containers() if one.vmid == self._vmid and one.node is None), None)
        if found is None:
            raise UnreachableError(f"{self.name}: {await self._absence()}")
        return replace(found, status="frozen") if found.status == "running" and await self._is_frozen() else found

    def _pct(self, *words: str) -> list[str]:
        return [*self._root, _PCT, *words]

    async def _push(self, data: bytes, path: str, mode: int) -> bool:
        """Stage, push beside the target, hash inside, rename. False if the bytes are not there; nothing is left."""
        stage = f"{await self._node_home()}/.dflash-stage-{secrets.token_hex(8)}"
        if not _PUSHABLE.fullmatch(stage):
            return False
        await self._node.put(data, stage)
        part = part_beside(path)
        limit_s = _PUSH_S + len(data) / _SLOWEST_BYTES_PER_S
        try:
            words = self._pct("push", str(self._vmid), stage, part, "--perms", "600")
            pushed = await self._node.run(words, timeout_s=limit_s)
        except TimedOutError:
            return False
        finally:
            await self._node.run(["rm", "-f", "--", stage])
        if pushed.code != 0:
            return False
        sha256 = hashlib.sha256(data).hexdigest()
        argv = program(ACCEPT, anchored(path), anchored(part), f"{mode:o}", sha256)
        return (await self.run(argv, timeout_s=limit_s)).code == 0

    async def _node_home(self) -> str:
        if self._home is None:
            done = await self._node.run(program(_HOME))
            if done.code != 0:
                raise cannot_write(self.name, "the home on its node", done)
            self._home = done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
        return self._home

    async def _ask(self, argv: Sequence[str]) -> Completed:
        done = await self._node.run(argv, timeout_s=_ASK_S)
        if done.code != 0:
            raise await self._refusal(done.stderr.decode("utf-8", "replace"))
        return done

    async def _ask_quietly(self, argv: Sequence[str]) -> bytes:
        """What it prints; nothing if it cannot be asked."""
        try:
            return (await self._node.run(argv, timeout_s=_ASK_S)).stdout
        except LinkLostError:
            raise
        except (HostError, TimedOutError):
            return b""

    async def _refusal(self, words: str) -> HostError:
        """Why pct did not start a program, from what it said."""
        for mark, sentence in _REFUSALS.items():
            if mark in words:
                return UnreachableError(f"{self.name}: {sentence}")
        if "does not exist" in words and "onfiguration file" in words:
            return UnreachableError(f"{self.name}: {await self._absence()}")
        if "not running" in words:
            lock = await self._lock()
            cure = f"it is locked ({lock}): wait for that to end" if lock else f"start it with `pct start {self._vmid}`"
            return UnreachableError(f"{self.name}: {self._where} is stopped; {cure}")
        said = last_line(words.encode()) or "it said nothing"
        return UnreachableError(f"{self.name}: pct starts nothing in {self._where} ({said}): look at it on its node")

    async def _absence(self) -> str:
        found = list[Container]()
        with suppress(HostError):
            found = await self.containers()
        for one in found:
            if one.vmid == self._vmid and one.node is not None:
                return (
                    f"{self._where} is not there: it lives on the node {one.node} now;"
                    f" set hosts.{self.name}.address to that node"
                )
        known = ", ".join(f"{one.vmid} ({one.name})" for one in found[:20]) or "none"
        return f"there is no {self._where}; known there: {known}. Correct hosts.{self.name}.vmid"

    async def _silence(self) -> UnreachableError:
        """Why pct answers nothing."""
        lock = await self._lock()
        why = "it is frozen" if await self._is_frozen() else "it may be frozen, or its node overloaded"
        busy = f" (locked: {lock})" if lock else ""
        return UnreachableError(
            f"{self.name}: {self._where} gives no answer within {START_S:g} s; {why}{busy}:"
            " what runs there is not lost and goes on after it thaws, as after a backup"
        )

    async def _is_frozen(self) -> bool:
        state = await self._ask_quietly([*self._root, _LXC_INFO, "-n", str(self._vmid), "-s", "-H"])
        return b"FROZEN" in state.upper()

    async def _lock(self) -> str | None:
        listed = read_list(await self._ask_quietly(self._pct("list")))
        return next((one.lock for one in listed if one.vmid == self._vmid), None)


_CLUSTER = ("get", "/cluster/resources", "--type", "vm", "--output-format", "json")
_SUDO = "allow it without one: USER ALL=(root) NOPASSWD: /usr/sbin/pct, /usr/bin/pvesh, /usr/bin/lxc-info"
_REFUSALS = {
    "please run as root": "pct needs root: log in as root, or set sudo = true and allow `sudo -n pct`",
    "a password is required": f"sudo on the node asks for a password; {_SUDO}",
    "not in the sudoers file": f"sudo on the node does not know this user; {_SUDO}",
    "not allowed to execute": f"sudo on the node does not allow pct; {_SUDO}",
    "sudo: not found": "there is no sudo on the node: log in as root",
    f"cannot start {_PCT}": "there is no pct: is this a Proxmox host? Correct the address",
    f"{_PCT}: not found": "there is no pct: is this a Proxmox host? Correct the address",
    f"{_PCT}: No such file": "there is no pct: is this a Proxmox host? Correct the address",
}

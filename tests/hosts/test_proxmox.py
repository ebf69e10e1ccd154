"""A container over pct: every peculiarity of it is met, or is a sentence of its own with exit code 5 (case70)."""

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import ExitCode, HostError, UnreachableError
from dflash_tui.hosts import open_host, proxmox
from dflash_tui.hosts.base import Completed, Host
from dflash_tui.hosts.containers import Container, read_cluster, read_list
from dflash_tui.hosts.local import LocalHost
from dflash_tui.hosts.proxmox import ProxmoxHost

from ..pvehost.fixtures import stanza
from ..pvehost.pve import PveHost


def container(vmid: int = 200, address: str = "pve", **more: Any) -> Host:
    return open_host(HostSpec(kind="proxmox", name="ct", address=address, vmid=vmid, **more))


async def refusal(host: Host) -> str:
    with pytest.raises(UnreachableError) as caught:
        await host.run(["true"])
    await host.close()
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert str(caught.value).startswith("ct: ") and "\n" not in str(caught.value)
    return str(caught.value)


class Heard:
    """A node that notes the argv of what is run on it."""

    def __init__(self, node: Host) -> None:
        self.name = node.name
        self.words: list[list[str]] = []
        self.put, self.close = node.put, node.close
        self._node = node

    async def start(self, argv: Any, *, is_brief: bool = False) -> Any:
        self.words.append(list(argv))
        return await self._node.start(argv, is_brief=is_brief)

    async def run(self, argv: Any, *, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
        self.words.append(list(argv))
        return await self._node.run(argv, stdin=stdin, timeout_s=timeout_s)

    def has_run(self, word: str) -> bool:
        return any(words[:2] == ["/usr/sbin/pct", word] for words in self.words)


@pytest.fixture
def heard(pve_box: PveHost) -> Heard:
    return Heard(open_host(HostSpec(kind="ssh", name="node", address="pve")))


def over(heard: Heard, vmid: int = 200) -> Host:
    return ProxmoxHost(HostSpec(kind="proxmox", name="ct", address="pve", vmid=vmid), heard)


async def test_a_container_that_is_stopped(pve_box: PveHost) -> None:
    words = await refusal(container(201))
    assert words == "ct: container 201 on pve is stopped; start it with `pct start 201`"
    with pytest.raises(UnreachableError, match="is stopped"):
        await container(201).put(b"x", "/root/x")
    assert not list((pve_box.rootfs(201) / "root").iterdir())
    assert not list((pve_box.folder / "root").glob(".dflash*"))


async def test_a_container_that_is_stopped_and_locked(pve_box: PveHost) -> None:
    pve_box.set_lock(201, "backup")
    try:
        assert (await refusal(container(201))).endswith("is stopped; it is locked (backup): wait for that to end")
    finally:
        pve_box.set_lock(201, None)


async def test_a_container_that_runs_and_is_locked_works(pve_box: PveHost) -> None:
    pve_box.set_lock(200, "snapshot")
    try:
        one = container()
        assert (await one.run(["echo", "on"])).stdout == b"on\n"
        assert isinstance(one, ProxmoxHost)
        assert [c.lock for c in await one.containers() if c.vmid == 200] == ["snapshot"]
        await one.close()
    finally:
        pve_box.set_lock(200, None)


async def test_a_container_that_is_not_there(pve_box: PveHost) -> None:
    words = await refusal(container(999))
    assert words.startswith("ct: there is no container 999 on pve; known there: 200 (train200), 201 (train201)")
    assert "hosts.ct.vmid" in words


async def test_a_container_that_lives_on_another_node(pve_box: PveHost) -> None:
    assert "container 300 on pve is not there: it lives on the node pve2 now" in await refusal(container(300))


async def test_a_container_that_is_frozen(pve_box: PveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxmox, "START_S", 0.5)
    one = container()
    await one.run(["true"])
    pve_box.freeze(200)
    pve_box.set_lock(200, "backup")
    try:
        assert isinstance(one, ProxmoxHost)
        assert await one.container() == Container(200, "train200", "frozen", "backup")
        words = await refusal(one)
        assert "gives no answer within 0.5 s; it is frozen (locked: backup)" in words
    finally:
        pve_box.set_lock(200, None)
        pve_box.thaw(200)
    assert (await one.run(["echo", "on"])).stdout == b"on\n"
    await one.close()


async def test_a_pct_that_hangs_is_a_timeout(pve_box: PveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxmox, "START_S", 0.3)
    pve_box.settle(pct_delay_s=1)
    try:
        assert "gives no answer within 0.3 s; it may be frozen, or its node overloaded" in await refusal(container())
    finally:
        pve_box.settle()


@pytest.mark.parametrize(
    ("user", "sudo", "words"),
    [
        ("plain", False, "pct needs root: log in as root, or set sudo = true and allow `sudo -n pct`"),
        ("plain", True, "sudo on the node asks for a password; allow it without one"),
    ],
)
async def test_a_user_who_is_not_root(pve: PveHost, ssh_config: Path, user: str, sudo: bool, words: str) -> None:
    ssh_config.write_text(stanza("pve", pve, user))
    assert words in await refusal(container(sudo=sudo))


async def test_a_user_with_sudo_does_all_that_root_does(pve: PveHost, ssh_config: Path) -> None:
    if not os.access("/usr/bin/sudo", os.X_OK):
        pytest.skip("no sudo here: install it to test users who are not root")
    ssh_config.write_text(stanza("pve", pve, "trusted"))
    one = container(sudo=True)
    assert (await one.run(["id", "-u"])).stdout == b"0\n"
    await one.put(b"by sudo", "/root/by sudo")
    assert (pve.rootfs(200) / "root/by sudo").read_bytes() == b"by sudo"
    assert isinstance(one, ProxmoxHost)
    assert [c.node for c in await one.containers() if c.vmid == 300] == ["pve2"]
    assert not list((pve.folder / "home/trusted").glob(".dflash*"))
    await one.close()
    assert "stopped" in await refusal(container(201, sudo=True))


async def test_a_machine_without_pct(box: Any) -> None:
    if os.access("/usr/sbin/pct", os.X_OK):
        pytest.skip("this machine is a Proxmox host")
    assert "there is no pct: is this a Proxmox host? Correct the address" in await refusal(container(address="box"))
    assert "there is no pct" in await refusal(container(address="local"))


async def test_a_program_finds_no_environment_of_the_host(pve_box: PveHost) -> None:
    one = container()
    done = await one.run(["env"])
    names = {line.split("=")[0] for line in done.stdout.decode().splitlines()}
    # PWD and the like are made by the shell inside.
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "container"}
    await one.close()


async def test_containers_of_the_whole_cluster_are_listed(pve_box: PveHost) -> None:
    one = container()
    assert isinstance(one, ProxmoxHost)
    assert await one.containers() == [
        Container(200, "train200", "running"),
        Container(201, "train201", "stopped"),
        Container(202, "train202", "running"),
        Container(300, "far300", "running", node="pve2"),
    ]
    assert (await one.container()).status == "running"
    for vmid, words in ((300, "lives on the node pve2"), (999, "there is no container 999")):
        other = container(vmid)
        assert isinstance(other, ProxmoxHost)
        with pytest.raises(UnreachableError, match=words):
            await other.container()
        await other.close()
    await one.close()


def test_what_a_node_says_is_not_believed_to_have_a_shape() -> None:
    assert read_list(b"") == []
    assert read_list(b"VMID Status Lock Name\n\xff\nabc running x\n") == []
    for printed in (b"", b"{}", b"[1, null, {}]", b"[" * 100_000, b'[{"type": "lxc", "vmid": "x"}]', b"\xff"):
        assert read_cluster(printed) == []
    [one] = read_cluster(b'[{"type": "lxc", "vmid": 7, "name": "\\u001b[2J", "status": 3, "lock": []}]')
    assert one == Container(7, "\\x1b[2J", "unknown")


def leftovers(pve: PveHost, folder: str = "root", vmid: int = 200) -> list[str]:
    stages = list((pve.folder / "root").glob(".dflash*"))
    return [path.name for path in [*stages, *(pve.rootfs(vmid) / folder).glob(".*.part")]]


async def test_a_file_goes_by_push_and_leaves_nothing_behind(pve_box: PveHost, heard: Heard) -> None:
    one, data = over(heard), os.urandom(2_000_000)
    target = pve_box.rootfs(200) / "root/a file"
    target.write_bytes(b"old")
    inode = target.stat().st_ino
    await one.put(data, "/root/a file", mode=0o755)
    assert heard.has_run("push")
    assert target.read_bytes() == data
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert target.stat().st_ino != inode, "never written in place"
    assert not leftovers(pve_box)
    await one.close()


@pytest.fixture
def held(pve_box: PveHost) -> Iterator[None]:
    """Somebody holds the lock that pct push waits for, as a start or a shutdown does."""
    pve_box.settle(lock_timeout_s=0.2)
    with pve_box.config_lock_file(200).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    pve_box.settle()


async def test_a_push_that_does_not_get_its_lock_goes_by_stdin(held: None, pve_box: PveHost, heard: Heard) -> None:
    one, data = over(heard), os.urandom(100_000)
    await one.put(data, "/root/locked", mode=0o640)
    assert heard.has_run("push")
    assert (pve_box.rootfs(200) / "root/locked").read_bytes() == data
    assert not leftovers(pve_box)
    await one.close()


async def test_a_path_that_pct_would_not_read_right_goes_by_stdin(pve_box: PveHost, heard: Heard) -> None:
    one = over(heard)
    await one.put(b"x", "/root/größe")
    assert (pve_box.rootfs(200) / "root/größe").read_bytes() == b"x"
    assert not heard.has_run("push")
    await one.close()


async def test_a_push_that_fails_in_silence_is_not_believed(pve_box: PveHost) -> None:
    """pct push exits 0 where the folder is missing and where the disk is full."""
    one = container(202)
    with pytest.raises(HostError, match="cannot write /no/such/x on ct: "):
        await one.put(b"x", "/no/such/x")
    small = container(202)
    await small.put(b"old", "/workspace/file")
    with pytest.raises(HostError, match="cannot write /workspace/file on ct: No space left on device"):
        await small.put(os.urandom(6_000_000), "/workspace/file")
    assert (await small.run(["sh", "-c", "ls -A /workspace; cat /workspace/file"])).stdout == b"file\nold"
    assert not leftovers(pve_box, vmid=202)
    await one.close()
    await small.close()


async def test_a_node_that_is_this_machine(pve_box: PveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same over a local host: pct is found where a test puts it."""
    pct = tmp_path / "pct"
    host_init = pve_box._init()
    pct.write_text(f'#!/bin/sh\nexec nsenter -t {host_init} -m -p /usr/sbin/pct "$@"\n')
    pct.chmod(0o755)
    monkeypatch.setattr(proxmox, "_PCT", str(pct))
    one = container(address="local")
    assert isinstance(one, ProxmoxHost) and isinstance(one._node, LocalHost)
    assert (await one.run(["cat"], stdin=b"\xff\0")).stdout == b"\xff\0"
    assert (await one.run(["sh", "-c", "exit 3"])).code == 3
    await one.close()

"""Every way not to reach a machine, or to lose it, is one sentence of its own kind; nothing half is taken for whole."""

import asyncio
import socket
import sys
import time
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import ExitCode, HostError, LinkLostError, UnreachableError, UsageError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Host
from dflash_tui.hosts.ssh import connect, faults, pool

from ..pvehost.fixtures import stanza
from ..pvehost.proxy import FaultProxy
from ..pvehost.sshd import SshServer, free_port


def host(address: str = "box") -> Host:
    return open_host(HostSpec(kind="ssh", name="box", address=address))


async def refusal(address: str = "box") -> str:
    one = host(address)
    with pytest.raises(UnreachableError) as caught:
        await one.run(["true"])
    await one.close()
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert str(caught.value).startswith("box: ") and "\n" not in str(caught.value)
    return str(caught.value)


def go_by(proxy: FaultProxy, config: Path) -> None:
    """Let `box` be reached through the proxy, under the key of the server behind it."""
    lines = [line for line in config.read_text().splitlines() if not line.startswith("  Port ")]
    old = next(line.split()[1] for line in config.read_text().splitlines() if line.startswith("  Port "))
    lines.insert(1, f"  Port {proxy.port}")
    known = config.parent / "known_by_proxy"
    file = next(line.split('"')[1] for line in lines if "UserKnownHostsFile" in line)
    known.write_text(Path(file).read_text().replace(f":{old} ", f":{proxy.port} "))
    config.write_text("\n".join(lines).replace(file, str(known)) + "\n")


async def test_a_port_where_nobody_listens(ssh_config: Path) -> None:
    assert "refuses connections: is its SSH server running" in await refusal(f"nobody@127.0.0.1:{free_port()}")


async def test_a_name_that_no_machine_has(ssh_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert "no machine is known by the name gpu7: correct the address" in await refusal("gpu7")
    assert "no machine is known by the name" in await refusal(f"{'x' * 70}.example")


async def test_a_server_that_is_silent(box: SshServer, ssh_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "LOGIN_S", 0.3)
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        proxy.is_dark = True
        assert "took the connection but did not let us in" in await refusal()


async def test_a_machine_that_does_not_answer(ssh_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "CONNECT_S", 0.3)
    monkeypatch.setattr(faults, "CONNECT_S", 0.3)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        # With its queue full, the kernel drops what comes: as from a machine that is off.
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        words = await refusal(f"a@127.0.0.1:{deaf.getsockname()[1]}")
        for filler in fillers:
            filler.close()
    assert "no answer from a@[127.0.0.1]" in words and "within 0.3 s: is the machine on" in words


async def test_a_server_that_hangs_up(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        proxy.is_refusing = True
        assert "hung up while we greeted" in await refusal()


async def test_something_that_is_no_ssh_server(ssh_config: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n" * 3)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        assert "box: a@" in await refusal(f"a@127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_a_config_that_does_not_read_is_named(ssh_config: Path) -> None:
    ssh_config.write_text("Host box\n  Port many\n")
    with pytest.raises(UsageError, match=r"box: ~/.ssh/config does not read: .*line 2"):
        await host().run(["true"])


async def test_a_reset_is_a_lost_link_for_everyone_on_it(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        cat = await one.start(["cat"])
        slow = asyncio.create_task(one.run(["sleep", "30"]))
        half = asyncio.create_task(one.run([sys.executable, "-c", "print('half', flush=True); input()"], stdin=b""))
        await half
        reading = asyncio.create_task(cat.read(10))
        await asyncio.sleep(0.1)
        proxy.reset()
        for waiting in (slow, reading, cat.wait(), cat.read(1), cat.read_error(1), cat.write(b"x")):
            with pytest.raises(LinkLostError, match=r"the link to box was lost .*: what runs there goes on"):
                await asyncio.wait_for(waiting, 5)
        await cat.close()
        # The next use connects anew.
        assert (await one.run(["echo", "again"])).stdout == b"again\n"
        await one.close()


async def test_a_link_that_died_while_idle_is_no_ones_loss(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        for number in range(3):
            assert (await one.run(["echo", str(number)])).stdout == b"%d\n" % number
            # Nothing has had the time to notice.
            proxy.reset()
        await one.close()


async def test_what_was_said_before_a_cut_is_not_taken_for_all(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        await one.run(["true"])
        proxy.cut_after = 1_000_000
        with pytest.raises(LinkLostError):
            await one.run([sys.executable, "-c", "print('x' * 3_000_000)"])
        await one.close()


async def test_a_dark_link_is_found_out(box: SshServer, ssh_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "KEEPALIVE_S", 0.1)
    monkeypatch.setattr(connect, "KEEPALIVE_COUNT", 2)
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        channel = await one.start(["cat"])
        proxy.is_dark = True
        with pytest.raises(LinkLostError):
            await asyncio.wait_for(channel.read(1), 5)
        with pytest.raises(LinkLostError):
            await channel.wait()
        await channel.close()
        await one.close()


async def test_a_put_that_is_cut_leaves_the_old_file_and_nothing_else(
    box: SshServer, ssh_config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        await one.run(["true"])
        # Fast enough to be under way, slow enough to be cut on it.
        proxy.delay_s = 0.05
        putting = asyncio.create_task(one.put(b"x" * 30_000_000, str(folder / "file")))
        await asyncio.sleep(0.4)
        assert len(list(folder.iterdir())) == 2
        proxy.reset()
        with pytest.raises(LinkLostError):
            await putting
        await one.close()
    end = time.monotonic() + 30
    while len(list(folder.iterdir())) > 1:
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    assert (folder / "file").read_bytes() == b"old"


async def test_a_machine_behind_another(
    ssh_server: SshServer, box: SshServer, ssh_config: Path, tmp_path: Path
) -> None:
    """ProxyJump, with the host key of each on file, and of neither asked twice."""
    inner = SshServer.make(tmp_path / "inner", "AllowTcpForwarding no")
    inner.start()
    try:
        with ssh_config.open("a") as file:
            file.write(stanza("inside", inner, inner.user, ProxyJump="box"))
            file.write(stanza("lost", inner, inner.user, ProxyJump="box").replace(str(inner.port), str(free_port())))
            file.write("Host loop\n  HostName 127.0.0.1\n  ProxyJump loop\n")
            file.write(stanza("twice", inner, inner.user, ProxyJump="box,inside"))
        one = host("inside")
        assert (await one.run(["sh", "-c", "echo $SSH_CONNECTION"])).stdout.split()[3] == str(inner.port).encode()
        await one.close()
        assert "the jump host cannot reach" in await refusal("lost")
        assert "the jump host cannot reach" in await refusal("twice"), "the second hop forwards nothing"
        with pytest.raises(UsageError, match="go in a circle"):
            await host("loop").run(["true"])
    finally:
        inner.end_sessions()
        inner.stop()


async def test_arguments_that_no_command_can_take_are_refused(box: SshServer) -> None:
    one = host()
    with pytest.raises(HostError, match="the arguments of echo on box are too long for a command: put them in a file"):
        await one.run(["echo", "x" * 200_000])
    assert len((await one.run(["echo", "x" * 100_000])).stdout) == 100_001
    await one.close()


async def test_a_cancelled_start_leaves_no_program_on_the_server(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        go_by(proxy, ssh_config)
        one = host()
        await one.run(["true"])
        proxy.delay_s = 0.1
        for _ in range(12):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.15):
                    await one.start(["cat"])
        proxy.delay_s = 0
        await asyncio.sleep(0.5)
        pools = pool._pools[asyncio.get_running_loop()]
        [shared] = pools.values()
        assert shared.num_connections == 1, "twelve programs that nobody wanted hold no place"
        for _ in range(6):
            await one.start(["cat"])
        assert shared.num_connections == 1
        await one.close()

"""One connection to a machine for all who use it, however few programs its server allows, and never a burst."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Channel, Host
from dflash_tui.hosts.ssh import pool
from dflash_tui.hosts.ssh.address import parse_address
from dflash_tui.hosts.ssh.connect import connect

from ..pvehost.fixtures import stanza
from ..pvehost.proxy import FaultProxy
from ..pvehost.sshd import SshServer, missing_sshd


def host(address: str = "box", name: str = "box") -> Host:
    return open_host(HostSpec(kind="ssh", name=name, address=address))


def num_connections(address: str = "box") -> int:
    found = pool._pools[asyncio.get_running_loop()]
    return sum(one.num_connections for key, one in found.items() if key.host == address)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A server that allows two programs on a connection, and drops the third of those who connect at once."""
    if reason := missing_sshd():
        pytest.skip(reason)
    server = SshServer.make(tmp_path_factory.mktemp("narrow"), "MaxSessions 2")
    server.start()
    yield server
    server.end_sessions()
    server.stop()


async def test_who_uses_one_machine_shares_a_connection(box: SshServer) -> None:
    several = [host(name=f"box{n}") for n in range(4)]
    done = await asyncio.gather(*(one.run(["echo", one.name]) for one in several))
    assert [one.stdout.decode().strip() for one in done] == [one.name for one in several]
    assert num_connections() == 1
    for one in several[:3]:
        await one.close()
    await several[3].run(["true"])
    assert num_connections() == 1, "closed by the last one alone"
    await several[3].close()
    assert num_connections() == 0
    await several[3].close()


async def test_eight_programs_on_a_connection_and_two_places_for_brief_ones(box: SshServer) -> None:
    one = host()
    lasting = [await one.start(["cat"]) for _ in range(pool.MAX_LASTING)]
    assert num_connections() == 1
    await asyncio.gather(*(one.run(["sleep", "0.05"]) for _ in range(20)))
    assert num_connections() == 1, "what is brief waits for a place"
    lasting.append(await one.start(["cat"]))
    assert num_connections() == 2
    await _talk(lasting)
    await one.close()


async def test_a_server_that_allows_two_programs_carries_twelve(narrow: SshServer, ssh_config: Path) -> None:
    """case64."""
    ssh_config.write_text(stanza("box", narrow, narrow.user))
    one = host()
    lasting = [await one.start(["cat"]) for _ in range(6)]
    lasting += await asyncio.gather(*(one.start(["cat"]) for _ in range(6)))
    await asyncio.gather(*(one.run(["true"]) for _ in range(5)))
    assert 6 <= num_connections() <= 8
    await _talk(lasting)
    await one.close()


async def test_a_place_that_the_server_has_still_to_clear_is_waited_for(
    box: SshServer, ssh_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """case64."""
    ssh_config.write_text(stanza("box", box, box.user))
    one, num_refused, really = host(), 0, pool._open

    async def refuse_twice(*words: Any) -> Any:
        nonlocal num_refused
        if num_refused < 2:
            num_refused += 1
            raise pool._FullError
        return await really(*words)

    await one.run(["true"])
    monkeypatch.setattr(pool, "_open", refuse_twice)
    assert (await one.run(["echo", "in"])).stdout == b"in\n" and num_refused == 2
    await one.close()


async def test_many_hosts_at_once_are_no_burst(box: SshServer, ssh_config: Path) -> None:
    """case64: by default a server drops some of what connects beyond ten at once."""
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        # A round trip long enough for all of them to be under way at once.
        proxy.delay_s = 0.02
        known = ssh_config.parent / "known"
        words = (box.keys / "known_hosts").read_text().replace(f":{box.port} ", f":{proxy.port} ")
        known.write_text(words)
        for n in range(24):
            text = stanza(f"box{n}", box, box.user, Port=str(proxy.port), UserKnownHostsFile=f'"{known}"')
            with ssh_config.open("a") as file:
                file.write(text)
        several = [host(f"box{n}", f"box{n}") for n in range(24)]
        done = await asyncio.gather(*(one.run(["echo", "in"]) for one in several))
        assert {one.stdout for one in done} == {b"in\n"}
        assert proxy.num_connections == 24, "none had to try twice"
        for one in several:
            await one.close()


async def test_a_failed_connect_is_shared_by_who_waited_for_it(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        proxy.is_refusing = True
        ssh_config.write_text(stanza("box", box, box.user, Port=str(proxy.port)))
        several = [host(name=f"box{n}") for n in range(5)]
        failed = await asyncio.gather(*(one.run(["true"]) for one in several), return_exceptions=True)
        assert [str(error).split(":")[0] for error in failed] == [one.name for one in several]
        assert proxy.num_connections == 1
        for one in several:
            await one.close()


def test_nothing_is_imported_before_there_is_something_to_say() -> None:
    text = (
        "import sys\nfrom dflash_tui.config import HostSpec\nfrom dflash_tui.hosts import open_host\n"
        "open_host(HostSpec(kind='local', name='local'))\n"
        "open_host(HostSpec(kind='ssh', name='box', address='box'))\n"
        "open_host(HostSpec(kind='proxmox', name='ct', address='box', vmid=200))\n"
        "print('asyncssh' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


async def test_a_host_that_is_dropped_while_it_connects_leaves_nothing_open(box: SshServer, ssh_config: Path) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        proxy.is_dark = True
        ssh_config.write_text(stanza("box", box, box.user, Port=str(proxy.port)))
        one = host()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await one.run(["true"])
        await one.close()
        assert not [task for task in asyncio.all_tasks() if "Pool._connect" in repr(task.get_coro())]


@pytest.mark.parametrize(
    ("config", "cipher"),
    [
        ({}, "aes256-gcm@openssh.com"),
        ({"Ciphers": "aes128-ctr,chacha20-poly1305@openssh.com"}, "aes128-ctr"),
    ],
    ids=["the quickest", "a person's choice"],
)
async def test_which_cipher_is_spoken(box: SshServer, ssh_config: Path, config: dict[str, str], cipher: str) -> None:
    ssh_config.write_text(stanza("box", box, box.user, **config))
    connection = await connect(parse_address("box", "hosts.box.address"))
    assert connection.get_extra_info("send_cipher") == cipher
    connection.abort()


async def _talk(channels: list[Channel]) -> None:
    for number, channel in enumerate(channels):
        await channel.write(b"%d" % number)
    for number, channel in enumerate(channels):
        assert await channel.read(10) == b"%d" % number
        await channel.close()

"""Reaching an agent: pushed once, asked in frames, gone when nobody asks; every way it can fail is one sentence."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, LinkLostError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.local import LocalChannel
from dflash_tui.remote.bundle import agent_file
from dflash_tui.remote.client import AgentClient


def pushed(far: HostSpec) -> Path:
    [file] = Path(str(far.workdir), "dflash-agent").iterdir()
    return file


async def open_once(spec: HostSpec) -> None:
    async with AgentClient.open(open_host(spec), spec) as agent:
        await agent.do("hello")


async def test_pushed_once_under_its_hash(far: HostSpec) -> None:
    await open_once(far)
    file = pushed(far)
    assert file.read_bytes() == agent_file()
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.stat()
    await open_once(far)
    assert file.stat() == before


async def test_a_damaged_agent_is_pushed_again(far: HostSpec) -> None:
    await open_once(far)
    pushed(far).write_bytes(agent_file()[:-100])
    await open_once(far)
    assert pushed(far).read_bytes() == agent_file()


async def test_an_agent_that_others_could_write_is_refused(far: HostSpec) -> None:
    await open_once(far)
    pushed(far).chmod(0o666)
    with pytest.raises(HostError, match=r"local: .*pyz is not ours alone to write in: remove it"):
        await open_once(far)


async def test_hello_says_who_and_where(agent: AgentClient) -> None:
    hello = await agent.do("hello")
    assert hello["python"] == ".".join(map(str, sys.version_info[:3]))
    assert hello["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(hello["now"] - time.time()) < 5


async def test_many_operations_in_one_request_fail_one_by_one(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    (tmp_path / "b").write_bytes(b"\xff\x00two\n")
    ops = [
        {"op": "read", "path": str(tmp_path / "a")},
        {"op": "status", "run_id": "../../etc"},
        {"op": "read", "path": str(tmp_path)},
        {"op": "read", "path": str(tmp_path / "none")},
        {"op": "read", "path": str(tmp_path / "b")},
    ]
    (a, a_data), (bad, _), (folder, _), (none, none_data), (_, b_data) = await agent.ask(ops)
    assert (a["size"], a_data, b_data, none_data) == (4, b"one\n", b"\xff\x00two\n", b"")
    assert bad == {"error": "'../../etc' is no run id"}
    assert folder["error"].endswith("is no plain file")
    assert none == {"missing": True}
    with pytest.raises(HostError, match=r"local: '\.\./\.\./etc' is no run id"):
        await agent.do("status", run_id="../../etc")


async def test_requests_asked_at_once_take_turns(agent: AgentClient, tmp_path: Path) -> None:
    files = [tmp_path / str(n) for n in range(20)]
    for n, file in enumerate(files):
        file.write_bytes(b"%d\n" % n * 1000)
    answers = await asyncio.gather(*(agent.ask([{"op": "read", "path": str(file)}]) for file in files))
    assert [answer[0][1] for answer in answers] == [file.read_bytes() for file in files]


async def test_a_killed_agent_is_a_lost_link_and_stays_one(agent: AgentClient) -> None:
    pid = (await agent.do("hello"))["pid"]
    os.kill(pid, 9)
    for _ in range(2):
        with pytest.raises(LinkLostError, match="the link to local was lost"):
            await agent.do("hello")


async def test_a_stopped_agent_is_a_lost_link_after_the_timeout(agent: AgentClient) -> None:
    pid = (await agent.do("hello"))["pid"]
    os.kill(pid, 19)
    with pytest.raises(LinkLostError, match=r"local gave no answer within 0\.2 s"):
        await agent.do("hello", timeout_s=0.2)
    with pytest.raises(LinkLostError, match="connect again"):
        await agent.do("hello")


async def test_a_cancellation_on_the_way_out_is_not_swallowed(far: HostSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    close, reached = LocalChannel.close, []

    async def use() -> None:
        async with AgentClient.open(open_host(far), far) as agent:
            await agent.do("hello")
            monkeypatch.setattr(LocalChannel, "close", close_and_cancel)
        reached.append("what comes after the agent")

    async def close_and_cancel(channel: LocalChannel) -> None:
        await close(channel)
        user.cancel()

    user = asyncio.create_task(use())
    with pytest.raises(asyncio.CancelledError):
        await user
    assert not reached


async def test_it_leaves_at_the_end_of_its_input_and_when_nobody_asks(tmp_path: Path) -> None:
    file = tmp_path / "agent.pyz"
    file.write_bytes(agent_file())
    host = open_host(HostSpec(kind="local", name="local"))
    done = await host.run([sys.executable, "-I", "-S", str(file), "serve"])
    assert (done.code, done.stderr) == (0, b"")
    idle = await host.start([sys.executable, "-I", "-S", str(file), "serve", "0.3"])
    await idle.write(json.dumps({"id": 1, "ops": [{"op": "hello"}]}).encode() + b"\n")
    begun = time.monotonic()
    assert (await asyncio.wait_for(idle.wait(), 5)).code == 0
    assert time.monotonic() - begun >= 0.3
    await idle.close()


async def test_a_workdir_below_home_is_found_there(
    far: HostSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir="~/w")
    async with AgentClient.open(open_host(spec), spec) as agent:
        assert agent.workdir == str(tmp_path / "home" / "w")


async def test_greetings_of_a_login_shell_are_skipped(far: HostSpec, tmp_path: Path) -> None:
    noisy = tmp_path / "python"
    noisy.write_text(f'#!/bin/sh\necho \'Welcome! {{"id": 1}}\'\nexec {sys.executable} "$@"\n')
    noisy.chmod(0o700)
    spec = HostSpec(kind="local", name="local", python=str(noisy), workdir=far.workdir)
    async with AgentClient.open(open_host(spec), spec) as agent:
        assert (await agent.do("hello"))["uid"] == os.getuid()


def script(folder: Path, text: str) -> str:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o700)
    return str(file)


async def test_interpreters_that_cannot_run_it(far: HostSpec, tmp_path: Path) -> None:
    cases = {
        str(tmp_path / "none"): r"cannot start .*none on local: No such file or directory",
        script(tmp_path, "echo 'Unknown option: -I' >&2; exit 2"): (
            r"cannot run the agent \(Unknown option: -I\): set hosts.local.python to a Python 3.8 or newer"
        ),
    }
    for python, sentence in cases.items():
        spec = HostSpec(kind="local", name="local", python=python, workdir=far.workdir)
        with pytest.raises(HostError, match=sentence):
            await open_once(spec)


async def test_an_old_python_is_named(far: HostSpec, tmp_path: Path) -> None:
    old = script(tmp_path, """echo; echo '@dflash-agent boot {"version": [3, 6, 9]}'""")
    spec = HostSpec(kind="local", name="local", python=old, workdir=far.workdir)
    with pytest.raises(
        HostError, match=r"python on local is Python 3\.6\.9: set hosts\.local\.python to a Python 3\.8"
    ):
        await open_once(spec)


async def test_a_workdir_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir=str(tmp_path / "file" / "w"))
    with pytest.raises(HostError, match=r"local: .*/file/w/dflash-agent: Not a directory"):
        await open_once(spec)

"""Launch, follow, stop, resume: the same story over every host, in a folder whose name breaks every careless quote."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import LinkLostError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Host
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.remote.launch import launch, resume, status, stop
from dflash_tui.runs import Cursor, RunRecord, RunState

from ..pvehost.pve import PveHost
from ..pvehost.sshd import SshServer
from ..remote.far_side import TOYS, assert_nobody_lives_below
from .conftest import FOLDER, SPECS, Reach, working_in

pytestmark = pytest.mark.usefixtures("no_settling")


class Copy:
    """What a session has of one run, over as many agents as it takes."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.log = b""
        self.cursors: dict[str, Cursor] = {}

    async def catch_up(self, agent: AgentClient) -> Heard:
        while True:
            heard = (await sweep(agent, {self.run_id: self.cursors}))[self.run_id]
            assert isinstance(heard, Heard), heard
            for chunk in heard.chunks:
                assert chunk.reset is None
                self.cursors[chunk.stream] = chunk.cursor
                self.log += chunk.data if chunk.stream == LOG else b""
            if not heard.has_more:
                return heard

    async def grow(self, agent: AgentClient, lines: int) -> None:
        end = time.monotonic() + 60
        wanted = self.log.count(b"\n") + lines
        while self.log.count(b"\n") < wanted:
            assert time.monotonic() < end
            await self.catch_up(agent)
            await asyncio.sleep(0.02)


async def test_launch_follow_stop_resume(reach: Reach, spec: HostSpec) -> None:
    copy = Copy("toy-1")
    async with AgentClient.open(reach.host, spec) as agent:
        begun = time.monotonic()
        record = RunRecord("toy-1", "toy", "train")
        run = await launch(agent, record, {"steps": 0, "on_term": "save"}, source=TOYS / "toy")
        assert time.monotonic() - begun < 5
        assert run.status.state is RunState.RUNNING and run.status.pid
        again = await launch(agent, replace(run.record), {"steps": 0}, source=TOYS / "toy")
        assert (again.already, again.status.pid) == (True, run.status.pid)
        await copy.grow(agent, 5)
    # The session is gone; another one finds the run as it is.
    async with AgentClient.open(reach.host, spec) as agent:
        await copy.grow(agent, 5)
        found = await stop(agent, "toy-1", grace_s=10)
        assert (found.state, found.reason, found.code) == (RunState.STOPPED, "stopped", 75)
        assert found.checkpoint
        resumed = await resume(agent, "toy-1")
        assert (resumed.status.state, resumed.status.attempt) == (RunState.RUNNING, 2)
        await copy.grow(agent, 5)
        found = await stop(agent, "toy-1", grace_s=10)
        assert (found.state, found.attempt) == (RunState.STOPPED, 2)
        heard = await copy.catch_up(agent)
        assert heard.status.state is RunState.STOPPED
    log = reach.here / FOLDER / "dflash-runs/toy-1" / LOG
    assert copy.log == log.read_bytes()
    assert copy.log.count(b'"event": "start"') == 2


async def test_agent_and_code_are_pushed_once(reach: Reach, spec: HostSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = []
    put = type(reach.host).put

    async def count(host: Host, data: bytes, path: str, mode: int = 0o600) -> None:
        pushed.append(path.rpartition("/")[2].rpartition(".")[2])
        await put(host, data, path, mode)

    monkeypatch.setattr(type(reach.host), "put", count)
    for number in (1, 2):
        async with AgentClient.open(reach.host, spec) as agent:
            record = RunRecord(f"toy-{number}", "toy", "train")
            await launch(agent, record, {"steps": 0}, source=TOYS / "toy")
            await stop(agent, record.run_id, grace_s=0)
    assert len(pushed) == 2, pushed


async def test_a_run_outlives_every_session_that_is_killed(pve_box: PveHost) -> None:
    """case54 over ssh and pct; the link is reset again and again, and the copy is whole."""
    folder = f"/workspace/{os.urandom(4).hex()}"
    (pve_box.rootfs(200) / folder[1:]).mkdir()
    spec, copy = working_in(SPECS["proxmox"], folder), Copy("toy-1")
    host = open_host(spec)
    async with AgentClient.open(host, spec) as agent:
        await launch(agent, RunRecord("toy-1", "toy", "train"), {"steps": 0, "step_s": 0.002}, source=TOYS / "toy")
        await copy.grow(agent, 3)
    for _ in range(5):
        with pytest.raises(LinkLostError):
            async with AgentClient.open(host, spec) as agent:
                await copy.grow(agent, 10)
                pve_box.end_sessions(signal.SIGKILL)
                await copy.grow(agent, 100_000)
    async with AgentClient.open(host, spec) as agent:
        assert (await status(agent, "toy-1")).state is RunState.RUNNING
        await stop(agent, "toy-1", grace_s=0)
        await copy.catch_up(agent)
    await host.close()
    assert copy.log == (pve_box.rootfs(200) / folder[1:] / "dflash-runs/toy-1" / LOG).read_bytes()
    assert_nobody_lives_below(Path(folder))


async def test_an_agent_leaves_when_its_session_is_killed(box: SshServer, tmp_path: Path) -> None:
    """case74: nothing stays on the machine for a reader that has gone."""
    spec = working_in(SPECS["ssh"], str(tmp_path / "far"))
    host = open_host(spec)
    with pytest.raises(LinkLostError):
        async with AgentClient.open(host, spec) as agent:
            await agent.do("hello")
            box.end_sessions()
            await agent.do("hello")
    await host.close()
    assert_nobody_lives_below(tmp_path / "far")

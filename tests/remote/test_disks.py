"""Disks that take nothing: read-only, noexec, full before a launch and full in the middle of a line."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError
from dflash_tui.hosts import open_host
from dflash_tui.remote.check import check
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.remote.launch import launch, status, stop
from dflash_tui.remote.script_run import launch_script, plan_script
from dflash_tui.remote.scripts import Script
from dflash_tui.runs import Cursor, RunRecord, RunState

from .far_side import TOYS, ended, kill, logged, state_of, until

Disk = Callable[[str], Path]


def on(workdir: Path) -> HostSpec:
    return HostSpec(kind="local", name="local", python=sys.executable, workdir=str(workdir))


def made_read_only(place: Path) -> bool:
    return subprocess.run(["mount", "-o", "remount,ro", place], capture_output=True).returncode == 0


@contextmanager
def covered_read_only(place: Path) -> Iterator[None]:
    """What is written by name is refused, and what is open goes on, as after an error of the disk."""
    subprocess.run(["mount", "--bind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def toy() -> RunRecord:
    return RunRecord("toy-1", "toy", "train")


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.remote.launch.MIN_FREE_BYTES", 0)


async def test_a_folder_that_is_mounted_read_only(disk: Disk) -> None:
    place = disk("ro")
    with pytest.raises(HostError) as caught:
        async with AgentClient.open(open_host(on(place)), on(place)):
            pass
    assert str(caught.value) == f"local: {place}/dflash-agent: Read-only file system; choose another workdir"


async def test_a_folder_that_became_read_only_starts_nothing_and_says_so(disk: Disk) -> None:
    place = disk("size=8m")
    async with AgentClient.open(open_host(on(place)), on(place)) as agent:
        run = await launch(agent, toy(), {"steps": 1}, source=TOYS / "toy")
        await ended(agent)
        await until(lambda: made_read_only(place), "its supervisor has left")
        assert (await status(agent, "toy-1")).state is RunState.FINISHED
        with pytest.raises(HostError, match=r"the disk is mounted read-only .*: mount it writable, or choose another"):
            await launch(agent, RunRecord("toy-2", "toy", "train"), {"steps": 1}, source=TOYS / "toy")
        [disk_says] = [one for one in await check(agent) if one.what == "disk"]
        assert disk_says.severity == "critical" and "it is mounted read-only" in disk_says.sentence
        assert not Path(str(run.record.path)).with_name("toy-2").exists()
        with pytest.raises(HostError, match=r"cannot write .*/x on local: Read-only file system; choose another"):
            await agent.host.put(b"x", f"{place}/x")


async def test_an_end_that_cannot_be_written_down_is_told(disk: Disk) -> None:
    place = disk("size=8m")
    async with AgentClient.open(open_host(on(place)), on(place)) as agent:
        run = await launch(agent, toy(), {"steps": 0}, source=TOYS / "toy")
        await logged(run)
        with covered_read_only(place):
            assert (await status(agent, "toy-1")).note is None
            await kill(state_of(run)["child"])
            heard = (await sweep(agent, {"toy-1": {}}))["toy-1"]
            assert isinstance(heard, Heard)
            assert (heard.status.state, heard.status.pid) == (RunState.RUNNING, None)
            why = "its disk is mounted read-only: mount it writable"
            assert heard.status.note == f"its process has ended, and how cannot be written down: {why}"
        found = await ended(agent)
        assert (found.state, found.reason, found.signal) == (RunState.FAILED, "signal", 9)


async def test_nothing_has_to_be_executable_where_runs_lie(disk: Disk) -> None:
    place = disk("noexec")
    (place / "venv/bin").mkdir(parents=True)
    shutil.copy("/bin/true", place / "venv/bin/python")
    async with AgentClient.open(open_host(on(place)), on(place)) as agent:
        await launch(agent, toy(), {"steps": 2}, source=TOYS / "toy")
        assert (await ended(agent)).state is RunState.FINISHED
        script = Script("it.sh", b"#!/bin/sh\necho 1\n")
        spec = await plan_script(agent, script, [], env={})
        await launch_script(agent, RunRecord("mine", "mine", "script"), script, spec)
        assert (await ended(agent, "mine")).state is RunState.FINISHED
        [disk_says] = [one for one in await check(agent) if one.what == "disk"]
        assert "mounted noexec, which does not matter" in disk_says.sentence
        # But a program cannot.
        program = Script("program", Path("/bin/true").read_bytes())
        spec = await plan_script(agent, program, [], env={})
        await launch_script(agent, RunRecord("elf", "elf", "script"), program, spec)
        found = await ended(agent, "elf")
        assert (found.state, found.reason, found.code) == (RunState.FAILED, "environment", 126)
        assert found.note and "cannot start" in found.note and "Permission denied" in found.note


async def test_a_disk_that_is_full_in_the_middle_of_a_line(disk: Disk) -> None:
    """Nothing that was logged is lost, the half line is the last one, and room makes all well."""
    place = disk("size=3m")
    async with AgentClient.open(open_host(on(place)), on(place)) as agent:
        config = {"steps": 0, "step_s": 0.001, "pad": 4000}
        run = await launch(agent, toy(), config, source=TOYS / "toy")
        found = await ended(agent)
        assert (found.state, found.reason) == (RunState.FAILED, "disk-full"), found
        log, copy, cursors = Path(str(run.record.log)).read_bytes(), b"", dict[str, Cursor]()
        while True:
            heard = (await sweep(agent, {"toy-1": cursors}))["toy-1"]
            assert isinstance(heard, Heard)
            for chunk in heard.chunks:
                cursors[chunk.stream] = chunk.cursor
                copy += chunk.data if chunk.stream == LOG else b""
            if not heard.has_more:
                break
        assert copy == log and len(log) > 1_000_000
        with pytest.raises(HostError, match=r"cannot be started in .*: the disk is full.*: free some space"):
            await launch(agent, RunRecord("toy-2", "toy", "train"), config, source=TOYS / "toy")
        with pytest.raises(HostError, match=r"cannot write .*/x on local: No space left on device; make room there"):
            await agent.host.put(b"x" * 1_000_000, f"{place}/x")
        # As soon as there is room, another run starts.
        Path(str(run.record.log)).write_bytes(b"")
        run = await launch(agent, RunRecord("toy-2", "toy", "train"), {"steps": 0}, source=TOYS / "toy")
        await logged(run)
        await stop(agent, "toy-2", grace_s=0)

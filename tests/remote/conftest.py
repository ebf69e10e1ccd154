"""A far side that is a folder of this machine, with a name that breaks every careless quote."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.hosts import open_host
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.launch import LaunchedRun, launch
from dflash_tui.runs import RunRecord, RunState

from .far_side import TOYS, assert_nobody_lives_below, logged

Start = Callable[..., Awaitable[LaunchedRun]]


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches return at once: half a second of watching, times fifty tests."""
    monkeypatch.setattr("dflash_tui.remote.launch.SETTLE_S", 0)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[HostSpec]:
    workdir = tmp_path / "my runs δ 1 $HOME 'x'"
    yield HostSpec(kind="local", name="local", python=sys.executable, workdir=str(workdir))
    assert_nobody_lives_below(workdir)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A Python in a session of its own that is none of ours."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a file system of its own with these options."""
    places: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk {len(places)}"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True)
        if mounted.returncode != 0:
            pytest.skip("a disk of its own needs the right to mount one")
        places.append(place)
        return place

    yield mount
    for place in places:
        assert_nobody_lives_below(place)
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def small_disk(disk: Callable[[str], Path]) -> Path:
    """A file system of 2 MB."""
    return disk("size=2m")


@pytest.fixture
async def agent(far: HostSpec) -> AsyncIterator[AgentClient]:
    async with AgentClient.open(open_host(far), far) as client:
        yield client


@pytest.fixture
async def start(agent: AgentClient) -> AsyncIterator[Start]:
    """Launch a toy run, wait until it has logged, and end it with the test whatever happens."""
    run_ids = []

    async def begin(run_id: str = "toy-1", *, toy: str = "toy", **config: Any) -> LaunchedRun:
        run_ids.append(run_id)
        record = RunRecord(run_id, "toy", "train")
        run = await launch(agent, record, {"steps": 0, **config}, recipe="toy", source=TOYS / toy)
        if run.status.state is RunState.RUNNING:
            await logged(run)
        return run

    yield begin
    for run_id in run_ids:
        await agent.do("stop", run_id=run_id, grace_s=0)

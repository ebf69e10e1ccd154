"""Public cases over every host: what a killed session leaves there, how a stop arrives, whose Python trains."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError
from dflash_tui.hosts import open_host
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG
from dflash_tui.remote.launch import launch, preflight, status, stop
from dflash_tui.runs import RunRecord, RunState

from ..remote.far_side import TOYS, processes_below, until
from .conftest import FOLDER, SPECS, Reach
from .test_whole_path import Copy

pytestmark = pytest.mark.usefixtures("no_settling")

# What a session does whose screen is opened and closed again and again, until it is killed.
SESSION = """
import asyncio, sys
from pathlib import Path

import msgspec

from dflash_tui.config import HostSpec
from dflash_tui.hosts import open_host
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import sweep
from dflash_tui.remote.launch import launch
from dflash_tui.runs import RunRecord


async def main(spec, source):
    host = open_host(spec)
    async with AgentClient.open(host, spec) as agent:
        await launch(agent, RunRecord("toy-1", "toy", "train"), {"steps": 0}, source=Path(source))
    for _ in range(20):
        async with AgentClient.open(host, spec) as agent:
            await sweep(agent, {"toy-1": {}})
    async with AgentClient.open(host, spec) as agent:
        await sweep(agent, {"toy-1": {}})
        print("reads", flush=True)
        await asyncio.sleep(600)


asyncio.run(main(msgspec.json.decode(sys.argv[1], type=HostSpec), sys.argv[2]))
"""


def trainers(folder: Path | str) -> list[int]:
    """By the pids of this machine, also of those in a container."""
    return [pid for pid in processes_below(Path(folder)) if b"\0-m\0trainer\0" in words_of(pid)]


def agents(folder: Path | str) -> list[int]:
    return [pid for pid in processes_below(Path(folder)) if b"\0serve\0" in words_of(pid)]


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_session_that_is_killed_leaves_the_run_and_no_reader(reach: Reach, spec: HostSpec) -> None:
    """case54, case74."""
    words = [sys.executable, "-c", SESSION, msgspec.json.encode(spec).decode(), str(TOYS / "toy")]
    session = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    assert session.stdout
    try:
        assert await session.stdout.readline() == b"reads\n"
        assert agents(reach.far)
    finally:
        session.kill()
        await session.wait()
    await until(lambda: not agents(reach.far), "no reader is left")
    [trainer] = trainers(reach.far)
    assert Path(f"/proc/{trainer}/fd/0").readlink() == Path("/dev/null")
    copy = Copy("toy-1")
    async with AgentClient.open(reach.host, spec) as agent:
        await copy.grow(agent, 5)
        assert (await status(agent, "toy-1")).state is RunState.RUNNING
        await stop(agent, "toy-1", grace_s=0)
        await copy.catch_up(agent)
    assert copy.log == (reach.here / FOLDER / "dflash-runs/toy-1" / LOG).read_bytes()


async def test_a_stop_needs_no_signal_of_the_link_and_ends_with_the_process(reach: Reach, spec: HostSpec) -> None:
    """case55: a server passes no signals on to what root has started. Another session stops what one has launched."""
    async with AgentClient.open(reach.host, spec) as agent:
        config = {"steps": 0, "on_term": "ignore"}
        await launch(agent, RunRecord("toy-1", "toy", "train"), config, source=TOYS / "toy")
        await until(lambda: trainers(reach.far), "it runs")
        await Copy("toy-1").grow(agent, 2)
    other = open_host(spec)
    async with AgentClient.open(other, spec) as agent:
        await agent.do("stop", run_id="toy-1", grace_s=0.5)
        seen = []
        while not (found := await status(agent, "toy-1")).state.is_over:
            seen.append(found.state)
            await asyncio.sleep(0.02)
        assert not trainers(reach.far), "never told before it is true"
    await other.close()
    assert set(seen) == {RunState.STOPPING}
    assert (found.state, found.reason, found.signal) == (RunState.STOPPED, "killed-after-grace", signal.SIGKILL)


async def test_two_sessions_that_launch_at_once_start_one_trainer(reach: Reach, spec: HostSpec) -> None:
    """case75."""

    async def one() -> tuple[bool, int | None]:
        host = open_host(spec)
        async with AgentClient.open(host, spec) as agent:
            run = await launch(agent, RunRecord("toy-1", "toy", "train"), {"steps": 0}, source=TOYS / "toy")
        await host.close()
        return run.already, run.status.pid

    found = await asyncio.gather(one(), one())
    assert sorted(already for already, _ in found) == [False, True]
    assert len({pid for _, pid in found}) == 1, "the second is told whose pid it is"
    assert len(trainers(reach.far)) == 1
    async with AgentClient.open(reach.host, spec) as agent:
        await stop(agent, "toy-1", grace_s=0)


async def test_the_python_beside_the_runs_trains_and_nothing_is_sourced(reach: Reach, spec: HostSpec) -> None:
    """case62: `python3` is another one."""
    plain = msgspec.structs.replace(spec, python=None)
    where = f"{spec.workdir}/venv/bin/python"
    venv = reach.here / FOLDER / "venv/bin/python"
    venv.parent.mkdir(parents=True)
    venv.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    venv.chmod(0o755)
    async with AgentClient.open(reach.host, plain) as agent:
        found = await preflight(agent)
        assert (found.executable, found.version) == (where, ".".join(map(str, sys.version_info[:3])))
        assert found.packages["torch"]
    bare = msgspec.structs.replace(spec, python="/usr/bin/python3")
    async with AgentClient.open(reach.host, bare) as agent:
        with pytest.raises(HostError, match=r"no torch .* in /usr/bin/python3 on .*: .*pip install .* or set hosts\."):
            await preflight(agent)


async def test_a_python_that_is_missing_or_too_old_is_named(reach: Reach, spec: HostSpec) -> None:
    """case72: and no SyntaxError of ours is seen."""
    name = SPECS[reach.kind].name
    for version, text in (("3.6.9", "[3, 6, 9]"), ("2.7.18", "[2, 7, 18]")):
        old = reach.here / f"python{version}"
        old.write_text(f"""#!/bin/sh\necho; echo '@dflash-agent boot {{"version": {text}}}'\n""")
        old.chmod(0o755)
        with pytest.raises(HostError) as caught:
            await greet(reach, msgspec.structs.replace(spec, python=f"{reach.far}/python{version}"))
        sentence = f"{reach.far}/python{version} on {name} is Python {version}: set hosts.{name}.python to a Python 3.8"
        assert str(caught.value).startswith(sentence)
    with pytest.raises(HostError) as caught:
        await greet(reach, msgspec.structs.replace(spec, python=f"{reach.far}/python3"))
    words = str(caught.value)
    assert f"{reach.far}/python3 on {name}" in words and "\n" not in words and "Traceback" not in words
    assert "No such file" in words or "not found" in words, words


async def greet(reach: Reach, spec: HostSpec) -> None:
    async with AgentClient.open(reach.host, spec):
        pass

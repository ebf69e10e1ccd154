"""Ending a run: it may save, then it must go, with everything it started and nothing else."""

import asyncio
import json
import math
import os
import subprocess
import time
from pathlib import Path

import pytest

from dflash_tui.errors import HostError, UsageError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.launch import launch, status, stop
from dflash_tui.runs import RunRecord, RunState

from .conftest import Start
from .far_side import TOYS, ended, kill, lives, logged, processes_below, state_of

CASES = Path(__file__).parents[1] / "data" / "cases"


async def test_a_trainer_that_saves_is_stopped(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save")
    found = await stop(agent, "toy-1", grace_s=10)
    assert (found.state, found.reason, found.code, found.signal) == (RunState.STOPPED, "stopped", 75, None)
    assert found.checkpoint and found.checkpoint.path.startswith(f"{run.record.path}/checkpoints/step-")
    assert found.pid is None
    end = json.loads(Path(str(run.record.path), "attempts/1/exit.json").read_text())
    assert (end["leftovers"], end["killed"]) == (0, False)
    assert await status(agent, "toy-1") == found or (await status(agent, "toy-1")).state is RunState.STOPPED


async def test_a_trainer_that_does_not_listen_is_killed_after_its_grace(start: Start, agent: AgentClient) -> None:
    await start(on_term="ignore")
    begun = time.monotonic()
    found = await stop(agent, "toy-1", grace_s=0.5)
    assert (found.state, found.reason, found.code, found.signal) == (RunState.STOPPED, "killed-after-grace", None, 9)
    assert 0.5 <= time.monotonic() - begun < 5.5


@pytest.mark.parametrize("grace_s", [math.nan, -1.0])
async def test_a_grace_that_is_none_ends_nothing(agent: AgentClient, grace_s: float) -> None:
    with pytest.raises(UsageError, match=r"a grace of .* s: give a number of seconds from 0"):
        await stop(agent, "toy-1", grace_s=grace_s)


async def test_while_it_stops_it_says_so(start: Start, agent: AgentClient) -> None:
    await start(on_term="ignore")
    found = await agent.do("stop", run_id="toy-1", grace_s=60)
    assert found["state"] == "stopping"
    assert (await status(agent, "toy-1")).state is RunState.STOPPING


async def test_one_that_is_killed_at_once_had_no_grace(start: Start, agent: AgentClient) -> None:
    await start(on_term="ignore")
    found = await stop(agent, "toy-1", grace_s=600, kill=True)
    assert (found.state, found.reason, found.signal) == (RunState.STOPPED, "stopped", 9)
    assert found.note == "killed at once, as was asked: what it had not saved by then is lost"


async def test_a_second_stop_shortens_the_grace(start: Start, agent: AgentClient) -> None:
    await start(on_term="ignore")
    await agent.do("stop", run_id="toy-1", grace_s=600)
    begun = time.monotonic()
    found = await stop(agent, "toy-1", grace_s=600, kill=True)
    assert (found.state, found.reason) == (RunState.STOPPED, "killed-after-grace")
    assert time.monotonic() - begun < 5


async def test_a_trainer_that_does_not_catch_the_signal_is_stopped_too(start: Start, agent: AgentClient) -> None:
    await start(on_term="die")
    found = await stop(agent, "toy-1", grace_s=10)
    assert (found.state, found.reason, found.signal) == (RunState.STOPPED, "stopped", 15)


async def test_saving_on_its_own_is_an_interruption_and_not_a_stop(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save")
    os.kill(run.status.pid or 0, 15)
    found = await ended(agent)
    assert (found.state, found.reason, found.code) == (RunState.INTERRUPTED, "saved", 75)
    late = await stop(agent, "toy-1", grace_s=1)
    assert (late.state, late.reason) == (RunState.INTERRUPTED, "saved"), "a stop after the end changes nothing"


async def test_children_are_gone_and_strangers_are_not(agent: AgentClient, stranger: subprocess.Popen[bytes]) -> None:
    """case56: two plain workers, one that ignores TERM, one in its own session."""
    config = {"script": str(CASES / "case56_fake_trainer.py"), "argv": ["{run}"]}
    run = await launch(agent, RunRecord("toy-1", "toy", "train"), config, source=TOYS / "toy_case")
    await logged(run, 1)
    pids = json.loads(Path(str(run.record.path), "pids.json").read_text())
    begun = time.monotonic()
    found = await stop(agent, "toy-1", grace_s=1)
    assert time.monotonic() - begun <= 1 + 5
    assert found.state is RunState.STOPPED
    assert not [pid for pid in [pids["main"], *pids["kids"]] if lives(pid)]
    assert stranger.poll() is None
    assert Path(str(run.record.log)).read_bytes().endswith(b"}\n")


async def test_a_run_that_ends_by_itself_leaves_no_child_either(agent: AgentClient, tmp_path: Path) -> None:
    script = tmp_path / "leaves_children.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "plain = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        # No mark in its environment, and a session of its own: only its parentage gives it away.
        "words = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "hidden = subprocess.Popen(words, env={}, start_new_session=True)\n"
        "print(plain.pid, hidden.pid)\n"
    )
    run = await launch(
        agent, RunRecord("toy-1", "toy", "train"), {"script": str(script), "argv": []}, source=TOYS / "toy_case"
    )
    found = await ended(agent)
    assert (found.state, found.code) == (RunState.FINISHED, 0)
    output = Path(str(run.record.path), "attempts/1/output.log").read_text()
    assert not [pid for pid in output.split() if lives(int(pid))]
    assert json.loads(Path(str(run.record.path), "attempts/1/exit.json").read_text())["leftovers"] == 2


async def test_stop_against_finish_ends_in_one_true_state(start: Start, agent: AgentClient) -> None:
    """The stop comes at many moments around the end; each run is one of the two, and its facts say which."""
    words = {"step_s": 0.005, "on_term": "save", "end": {"reason": "completed", "exit_code": 0}}
    runs = [await start(f"race-{number}", **words) for number in range(5)]
    for number, run in enumerate(runs):
        folder = Path(str(run.record.path))
        asyncio.get_running_loop().call_later(0.02, (folder / "finish").touch)
        await asyncio.sleep(number * 0.01)
        found = await stop(agent, run.record.run_id, grace_s=5)
        end = json.loads((folder / "attempts/1/exit.json").read_text())
        is_completed = '"event": "end"' in (folder / "train_log.jsonl").read_text()
        assert (found.state, found.reason) == (
            (RunState.FINISHED, "completed") if is_completed else (RunState.STOPPED, "stopped")
        )
        assert is_completed or end["stop_seen"]


async def test_there_is_no_stopping_what_was_never_there(agent: AgentClient) -> None:
    with pytest.raises(HostError, match=r"local: there is no run none in .*dflash-runs"):
        await stop(agent, "none", grace_s=1)


async def test_a_killed_supervisor_leaves_an_orphan_that_can_be_stopped(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save")
    await kill(state_of(run)["supervisor"])
    found = await status(agent, "toy-1")
    assert (found.state, found.pid) == (RunState.ORPHANED, run.status.pid)
    found = await stop(agent, "toy-1", grace_s=10)
    assert (found.state, found.reason) == (RunState.STOPPED, "stopped")
    assert found.note == "its supervisor was gone, so only its log says how it ended"
    assert found.checkpoint and not lives(run.status.pid)


async def test_an_orphan_that_does_not_listen_is_killed(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="ignore")
    await kill(state_of(run)["supervisor"])
    found = await stop(agent, "toy-1", grace_s=0.3)
    assert (found.state, found.reason) == (RunState.STOPPED, "killed-after-grace")
    assert not processes_below(Path(str(run.record.path)))

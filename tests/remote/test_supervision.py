"""What is said of a run when its trainer, its supervisor, or its machine goes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.remote.launch import LaunchedRun, resume, status, stop
from dflash_tui.runs import Cursor, RunState

from .conftest import Start
from .far_side import ended, kill, log_of, state_of, until


async def kill_all(run: LaunchedRun) -> None:
    """The supervisor first, so that it cannot write down the end of the other."""
    state = state_of(run)
    await kill(state["supervisor"])
    await kill(state["child"])


def rewrite_where(run: LaunchedRun, **where: Any) -> None:
    """As if the state had been written before the machine, or the container, was started again."""
    file = Path(str(run.record.path), "attempts/1/state.json")
    state = json.loads(file.read_text())
    state["where"].update(where)
    file.write_text(json.dumps(state))


async def test_a_finished_run(start: Start, agent: AgentClient) -> None:
    await start(steps=3)
    found = await ended(agent)
    assert (found.state, found.reason, found.code, found.attempt) == (RunState.FINISHED, "completed", 0, 1)


@pytest.mark.parametrize(
    ("config", "reason", "code", "signal"),
    [
        ({"exit": 3}, "error", 3, None),
        ({"exit": 1, "end": {"reason": "nan", "exit_code": 1}}, "nan", 1, None),
        ({"exit": 1, "raise": "torch.OutOfMemoryError: CUDA out of memory."}, "oom-gpu", 1, None),
        ({"exit": 1, "raise": "OSError: [Errno 28] No space left on device"}, "disk-full", 1, None),
        ({"kill": 11}, "signal", None, 11),
    ],
)
async def test_failures_have_a_reason(
    start: Start, agent: AgentClient, config: dict[str, Any], reason: str, code: int | None, signal: int | None
) -> None:
    await start(steps=2, **config)
    found = await ended(agent)
    assert (found.state, found.reason, found.code, found.signal) == (RunState.FAILED, reason, code, signal)


async def test_everything_killed_is_lost(start: Start, agent: AgentClient) -> None:
    run = await start()
    await kill_all(run)
    found = await status(agent, "toy-1")
    assert (found.state, found.reason) == (RunState.LOST, "killed")


async def test_a_rebooted_host_and_a_restarted_container_are_told_apart(start: Start, agent: AgentClient) -> None:
    run = await start()
    await kill_all(run)
    here = state_of(run)["where"]
    rewrite_where(run, boot_id="another")
    assert (await status(agent, "toy-1")).reason == "host-rebooted"
    rewrite_where(run, **{**here, "pid1_start": here["pid1_start"] + 1})
    assert (await status(agent, "toy-1")).reason == "container-restarted"


async def test_a_pid_that_somebody_else_has_now_is_not_the_run(
    start: Start, agent: AgentClient, stranger: subprocess.Popen[bytes]
) -> None:
    run = await start()
    await kill_all(run)
    file = Path(str(run.record.path), "attempts/1/state.json")
    state = json.loads(file.read_text())
    state["child"] = [stranger.pid, state["child"][1]]
    file.write_text(json.dumps(state))
    assert (await stop(agent, "toy-1", grace_s=0)).state is RunState.LOST
    assert stranger.poll() is None


async def test_an_orphan_that_ends_by_itself_is_judged_by_its_log(start: Start, agent: AgentClient) -> None:
    run = await start(steps=60, end={"reason": "completed", "exit_code": 0})
    await kill(state_of(run)["supervisor"])
    assert (await status(agent, "toy-1")).state is RunState.ORPHANED
    with pytest.raises(HostError, match="is orphaned"):
        await resume(agent, "toy-1")
    found = await ended(agent)
    assert (found.state, found.reason, found.code) == (RunState.FINISHED, "completed", 0)


async def test_a_launch_that_was_cut_off_counts_for_nothing(start: Start, agent: AgentClient) -> None:
    half = Path(agent.workdir, "dflash-runs/toy-1/attempts/1")
    half.mkdir(parents=True, mode=0o700)
    half.parent.parent.chmod(0o700)
    half.parent.parent.parent.chmod(0o700)
    (half / "stop.json").write_text('{"grace_s": 0, "asked": 1}')
    assert (await status(agent, "toy-1")).state is RunState.ABSENT
    run = await start()
    assert run.status.state is RunState.RUNNING


async def test_a_damaged_state_is_a_sentence_and_not_a_crash(start: Start, agent: AgentClient) -> None:
    run = await start(steps=1)
    await ended(agent)
    Path(str(run.record.path), "attempts/1/exit.json").write_text("{")
    with pytest.raises(HostError, match=r"attempts/1/exit\.json is damaged: it holds no JSON"):
        await status(agent, "toy-1")
    Path(str(run.record.path), "attempts/1/exit.json").unlink()


async def test_a_heartbeat_grows_old_and_comes_back(start: Start, agent: AgentClient) -> None:
    run = await start()
    found = await status(agent, "toy-1")
    assert found.age_s is not None and 0 <= found.age_s < 10
    assert found.heartbeat_age_s is not None and found.heartbeat_age_s < 10
    state = Path(str(run.record.path), "attempts/1/state.json")
    an_hour_ago = state.stat().st_mtime - 3600
    os.utime(state, (an_hour_ago, an_hour_ago))
    frozen = await status(agent, "toy-1")
    assert frozen.state is RunState.RUNNING
    assert frozen.heartbeat_age_s is not None and frozen.heartbeat_age_s >= 3600
    await until(lambda: state.stat().st_mtime > an_hour_ago + 3000, "a heartbeat, one in 5 s")


async def follow_to_the_end(agent: AgentClient, run_id: str) -> tuple[dict[str, bytes], Heard]:
    """What the conductor does, without a pause."""
    copies: dict[str, bytes] = {}
    cursors: dict[str, Cursor] = {}
    while True:
        heard = (await sweep(agent, {run_id: cursors}))[run_id]
        assert isinstance(heard, Heard)
        for chunk in heard.chunks:
            assert chunk.reset is None
            copies[chunk.stream] = copies.get(chunk.stream, b"") + chunk.data
            cursors[chunk.stream] = chunk.cursor
        if heard.status.state.is_over and not heard.has_more:
            return copies, heard


async def test_following_a_run_brings_every_byte(start: Start, agent: AgentClient) -> None:
    run = await start(steps=30, on_term="save", say="words δ")
    copies, heard = await follow_to_the_end(agent, "toy-1")
    folder = Path(str(run.record.path))
    assert copies == {
        LOG: (folder / LOG).read_bytes(),
        "attempts/1/output.log": (folder / "attempts/1/output.log").read_bytes(),
    }
    assert heard.status.state is RunState.FINISHED
    assert [record["step"] for record in log_of(run)[1:]] == list(range(1, 31))


async def test_following_goes_on_through_a_resume(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save")
    await stop(agent, "toy-1", grace_s=5)
    await resume(agent, "toy-1")
    await stop(agent, "toy-1", grace_s=5)
    copies, _ = await follow_to_the_end(agent, "toy-1")
    for stream in (LOG, "attempts/1/output.log", "attempts/2/output.log"):
        assert copies.get(stream, b"") == Path(str(run.record.path), stream).read_bytes()
    Path(str(run.record.path), "attempts/2/output.log").write_bytes(b"words\n")
    heard = (await sweep(agent, {"toy-1": {"attempts/2/output.log": Cursor()}}))["toy-1"]
    assert isinstance(heard, Heard)
    assert {chunk.stream for chunk in heard.chunks} == {LOG, "attempts/2/output.log"}, "what is behind stays behind"


async def test_one_request_follows_many_runs_and_a_bad_one_spoils_none(start: Start, agent: AgentClient) -> None:
    await start("one-1")
    await start("two-2")
    heard = await sweep(agent, {"one-1": {}, "../bad": {}, "two-2": {}, "none-3": {}})
    assert isinstance(heard["../bad"], HostError)
    for run_id in ("one-1", "two-2"):
        found = heard[run_id]
        assert isinstance(found, Heard) and found.status.run_id == run_id
        assert {chunk.stream for chunk in found.chunks} == {LOG, "attempts/1/output.log"}
    none = heard["none-3"]
    assert isinstance(none, Heard) and (none.status.state, none.chunks) == (RunState.ABSENT, [])

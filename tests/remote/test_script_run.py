"""A script as a run: its words and environment, which file is its log, and that the log of several attempts is one."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, log_source, sweep
from dflash_tui.remote.launch import LaunchedRun, resume, status, stop
from dflash_tui.remote.script_run import launch_script, plan_script
from dflash_tui.remote.scripts import Script
from dflash_tui.runs import Cursor, RunRecord, RunState

from .far_side import ended, lives, until

CASES = Path(__file__).parents[1] / "data" / "cases"


@pytest.fixture
async def agent(agent: AgentClient) -> AsyncIterator[AgentClient]:
    """Whatever a test has begun there is ended with it."""
    yield agent
    for run in (await agent.do("list"))["runs"]:
        await stop(agent, run["run_id"], grace_s=0)


async def begin(
    agent: AgentClient, text: str, *args: str, run_id: str = "mine", log: str | None = None, **env: str
) -> LaunchedRun:
    script = Script("it's my trainer.py", text.encode())
    spec = await plan_script(agent, script, args, log=log, env=env)
    return await launch_script(agent, RunRecord(run_id, "mine", "script"), script, spec)


class Copy:
    """What a collector would have of a run's log: its generations."""

    def __init__(self, agent: AgentClient, source: str | None, run_id: str = "mine") -> None:
        self.agent = agent
        self.source = source
        self.run_id = run_id
        self.generations = [b""]
        self.cursors: dict[str, Cursor] = {}

    async def catch_up(self) -> Heard:
        while True:
            heard = (await sweep(self.agent, {self.run_id: self.cursors}, logs={self.run_id: self.source}))[self.run_id]
            assert isinstance(heard, Heard), heard
            for chunk in heard.chunks:
                if chunk.stream == LOG and chunk.data:
                    self.generations += [b""] if chunk.reset else []
                    self.generations[-1] += chunk.data
                    self.cursors[LOG] = chunk.cursor
            if not heard.has_more:
                return heard


async def test_words_folder_and_environment_arrive_as_meant(agent: AgentClient) -> None:
    """case61, case62; a secret lies in one file that is ours alone."""
    words = json.loads((CASES / "case61_nasty_args.json").read_text())
    text = (
        "import json, os, sys\n"
        "json.dump([sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read()], open('seen.json', 'w'))"
    )
    run = await begin(agent, text, *words, MY_TOKEN="s3cret 'x'\n", CUDA_VISIBLE_DEVICES="0,1")
    await ended(agent, "mine")
    folder = Path(str(run.record.path))
    seen, cwd, environment, stdin = json.loads((folder / "seen.json").read_text())
    assert (seen, cwd, stdin) == (words, str(folder), "")
    names = ("MY_TOKEN", "DFLASH_ATTEMPT", "DFLASH_RUN_DIR", "CUDA_VISIBLE_DEVICES")
    assert [environment[name] for name in names] == ["s3cret 'x'\n", "1", str(folder), "0,1"]
    assert environment["PATH"].startswith(f"{Path(sys.executable).parent}:")
    (folder / "seen.json").unlink()
    holding = [path for path in folder.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
    assert holding == [folder / "attempts/1/spec.json"]
    assert holding[0].stat().st_mode & 0o777 == 0o600


async def test_a_script_that_is_no_python_needs_none(agent: AgentClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "python", "/no/such/python")
    script = Script("train", b"#!/bin/sh\necho $1\n")
    spec = await plan_script(agent, script, ["a b"], env={})
    run = await launch_script(agent, RunRecord("mine", "mine", "script"), script, spec)
    assert (await ended(agent, "mine")).state is RunState.FINISHED
    assert Path(str(run.record.path), "attempts/1/output.log").read_text() == "a b\n"


async def test_a_plan_starts_and_pushes_nothing(agent: AgentClient) -> None:
    spec = await plan_script(agent, Script("x.py", b"1"), ["a"], env={})
    assert (spec["argv"][0], spec["argv"][2:], spec["code"]["there"]) == (sys.executable, ["a"], False)
    assert not Path(spec["code"]["path"]).exists()
    assert (await agent.do("list"))["runs"] == []


@pytest.mark.parametrize("log", ["logs/my log.jsonl", "/absolute é.jsonl"])
async def test_a_file_is_the_log_wherever_it_lies(agent: AgentClient, tmp_path: Path, log: str) -> None:
    log = str(tmp_path) + log if log.startswith("/") else log
    text = "import os, sys; os.makedirs('logs'); open(sys.argv[1], 'w').write('one\\ntwo')"
    run = await begin(agent, text, log, log=log)
    await ended(agent, "mine")
    assert run.record.log == (log if log.startswith("/") else f"{run.record.path}/{log}")
    copy = Copy(agent, log_source(run.record))
    await copy.catch_up()
    assert copy.generations == [b"one\ntwo"]


async def test_what_several_attempts_print_is_one_log_without_a_gap_or_a_double(agent: AgentClient) -> None:
    """Each attempt is a generation; one that said nothing is none, and a half last line counts once it is the last."""
    text = (
        "import os, sys, time\nn = int(os.environ['DFLASH_ATTEMPT'])\n"
        "for i in range(0 if n == 2 else 3000): print('%d %d' % (n, i))\n"
        "print(end='' if n == 2 else 'end of %d' % n)\n"
        "sys.exit(n != 4)"
    )
    said = {n: "".join(f"{n} {i}\n" for i in range(3000)) + f"end of {n}" for n in (1, 3, 4)}
    await begin(agent, text)
    copy, late = Copy(agent, "output"), Copy(agent, "output")
    for attempt in (1, 2, 3, 4):
        found = await ended(agent, "mine")
        assert found.attempt == attempt
        if attempt != 3:  # The third is only seen after the fourth has begun.
            heard = await copy.catch_up()
            assert heard.status.state.is_over
        if attempt < 4:
            await resume(agent, "mine")
    await copy.catch_up()
    await late.catch_up()
    expected = [said[n].encode() for n in (1, 3, 4)]
    assert copy.generations == expected
    assert late.generations == expected
    with pytest.raises(HostError, match="finished all its steps"):
        await resume(agent, "mine")


async def test_an_attempt_that_prints_slowly_never_makes_the_cursor_forget(agent: AgentClient) -> None:
    text = (
        "import os, time\nif os.environ['DFLASH_ATTEMPT'] == '1': print('first'); raise SystemExit(3)\n"
        "print('ha', end='')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('lf')"
    )
    run = await begin(agent, text)
    copy = Copy(agent, "output")
    await ended(agent, "mine")
    await copy.catch_up()
    await resume(agent, "mine")
    output = Path(str(run.record.path), "attempts/2/output.log")
    await until(lambda: output.exists() and output.read_text() == "ha", "half a line")
    for _ in range(3):
        assert not (await copy.catch_up()).has_more
    Path(str(run.record.path), "go").touch()
    await ended(agent, "mine")
    await copy.catch_up()
    assert copy.generations == [b"first\n", b"half\n"]


async def test_a_script_is_stopped_with_all_it_started(agent: AgentClient) -> None:
    """case56: two workers, one that ignores TERM, one in a session of its own; and the log ends with a whole line."""
    expected = json.loads((CASES / "case56_fake_trainer.expected.json").read_text())
    text = (CASES / "case56_fake_trainer.py").read_text()
    run = await begin(agent, text, ".", log="train_log.jsonl")
    folder = Path(str(run.record.path))
    await until(lambda: (folder / LOG).exists() and (folder / LOG).read_bytes().count(b"\n") > 2, "some rows")
    pids = json.loads((folder / "pids.json").read_text())
    found = await stop(agent, "mine", grace_s=5)
    assert found.state == expected["state"]
    assert sum(lives(pid) for pid in [pids["main"], *pids["kids"]]) == expected["after_stop_survivors"]
    assert (folder / LOG).read_bytes().endswith(b"\n") is expected["last_log_line_complete"]


async def test_a_script_that_never_flushes_is_heard_at_once(agent: AgentClient) -> None:
    """case77: first line within 3 s, and the file is as it was."""
    text = (CASES / "case77_buffered_trainer.py").read_text()
    run = await begin(agent, text)
    copy = Copy(agent, "output")
    output = Path(str(run.record.path), "attempts/1/output.log")
    await until(lambda: output.stat().st_size > 0, "a line is there", 3)
    await copy.catch_up()
    assert copy.generations[0].startswith(b"tick 0\n")
    [script] = Path(agent.workdir, "dflash-scripts").glob("*/*")
    assert script.read_text() == text


async def test_a_second_launch_of_the_same_run_is_refused_with_its_pid(agent: AgentClient) -> None:
    """case75."""
    first = await begin(agent, "import time; time.sleep(60)")
    again = await begin(agent, "import time; time.sleep(60)")
    assert (again.already, again.status.pid) == (True, first.status.pid)
    with pytest.raises(HostError, match=f"is running \\(pid {first.status.pid}\\)"):
        await resume(agent, "mine")
    os.kill(first.status.pid or 0, signal.SIGKILL)
    found = await ended(agent, "mine")
    assert (found.state, found.reason, found.signal) == (RunState.FAILED, "signal", 9)
    resumed = await resume(agent, "mine")
    assert (resumed.status.attempt, resumed.already) == (2, False)
    assert (await status(agent, "mine")).state is RunState.RUNNING

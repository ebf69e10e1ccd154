"""Launch and resume: detached for good, once however often asked, and nothing left behind where it cannot start."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, UsageError
from dflash_tui.hosts import open_host
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.launch import launch, preflight, remedy, resume, status, stop
from dflash_tui.remote.plan import RUN_ID, plan_training
from dflash_tui.runs import RunRecord, RunState

from .conftest import Start
from .far_side import TOYS, ended, fill, log_of, logged, processes_below, state_of, until

CASES = Path(__file__).parents[1] / "data" / "cases"


def record(run_id: str = "toy-1") -> RunRecord:
    return RunRecord(run_id, "toy", "train")


async def test_launch_returns_while_the_run_goes_on(start: Start, agent: AgentClient) -> None:
    begun = time.monotonic()
    run = await start()
    assert time.monotonic() - begun < 5
    assert (run.status.state, run.status.attempt, run.already) == (RunState.RUNNING, 1, False)
    os.kill(run.status.pid or 0, 0)
    assert os.getsid(run.status.pid or 0) == run.status.pid, "a session of its own"
    now = len(log_of(run))
    await logged(run, now + 5)
    assert (await status(agent, "toy-1")).pid == run.status.pid


async def test_config_cwd_and_stdin_arrive_as_meant(start: Start) -> None:
    nasty = json.loads((CASES / "case61_nasty_args.json").read_text())
    config = {"values": nasty, "nested": {word: word for word in nasty}, "tiny": 5e-324, "big": 2**63}
    run = await start(**config)
    seen = log_of(run)[0]
    assert seen["seen"] == {**config, "steps": 0, "run_dir": run.record.path, "run_id": "toy-1"}
    assert seen["cwd"] == run.record.path
    assert seen["stdin"] == ""
    assert not list(Path(str(run.record.path)).glob("*out*")), "no shell has read a '>'"


async def test_the_folder_of_a_run(start: Start, agent: AgentClient) -> None:
    run = await start()
    folder = Path(str(run.record.path))
    assert folder == Path(agent.workdir, "dflash-runs", "toy-1")
    assert folder.stat().st_mode & 0o777 == 0o700
    names = {"run.json", "lock", "train_log.jsonl", "code", "attempts"}
    assert {entry.name for entry in folder.iterdir()} == names
    assert (folder / "code").resolve() == Path(agent.workdir, "dflash-code", str(run.record.code_hash)).resolve()
    spec = json.loads((folder / "attempts/1/spec.json").read_text())
    assert (spec["recipe"], spec["host"], spec["code"]["sha256"]) == ("toy", "local", run.record.code_hash)
    assert spec["argv"] == [sys.executable, "-m", "trainer", str(folder / "attempts/1/config.json")]
    assert set(spec["python"]["packages"]) == {"torch", "transformers", "safetensors"}
    assert json.loads((folder / "run.json").read_text())["name"] == "toy"


async def test_the_environment_is_the_configs_and_not_the_sessions(
    far: HostSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SESSION", "x")
    monkeypatch.setenv("PYTHONSTARTUP", "x")
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir=far.workdir, env={"MY_SETTING": "a b"})
    async with AgentClient.open(open_host(spec), spec) as agent:
        run = await launch(agent, record(), {"steps": 0}, source=TOYS / "toy")
        environment = Path(f"/proc/{run.status.pid}/environ").read_bytes().split(b"\0")
        await stop(agent, "toy-1", grace_s=0)
    assert b"MY_SETTING=a b" in environment
    assert b"PYTHONUNBUFFERED=1" in environment
    assert not [entry for entry in environment if entry.startswith((b"SECRET", b"PYTHONSTARTUP", b"DFLASH_TUI_HOME"))]


async def test_eight_launches_at_once_start_one_process(far: HostSpec) -> None:
    async def one() -> tuple[bool, int | None]:
        async with AgentClient.open(open_host(far), far) as agent:
            run = await launch(agent, record(), {"steps": 0}, source=TOYS / "toy")
            return run.already, run.status.pid

    found = await asyncio.gather(*(one() for _ in range(8)))
    assert sorted(already for already, _ in found) == [False] + [True] * 7
    assert len({pid for _, pid in found}) == 1
    workdir = Path(str(far.workdir))
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_below(workdir)]
    assert len([words for words in commands if b"\0-m\0trainer\0" in words]) == 1
    async with AgentClient.open(open_host(far), far) as agent:
        await stop(agent, "toy-1", grace_s=0)


async def test_a_launch_whose_answer_was_lost_is_repeated_without_harm(start: Start, agent: AgentClient) -> None:
    first = await start()
    again = await launch(agent, first.record, {"steps": 0}, source=TOYS / "toy")
    assert (again.already, again.status.pid) == (True, first.status.pid)


async def test_a_launch_that_is_repeated_after_the_end_finds_the_end(start: Start, agent: AgentClient) -> None:
    first = await start(steps=1)
    await ended(agent)
    again = await launch(agent, first.record, {"steps": 1}, source=TOYS / "toy")
    assert (again.already, again.status.state, again.status.attempt) == (True, RunState.FINISHED, 1)
    assert len(log_of(first)) == 2


async def test_the_end_of_the_agents_process_group_leaves_the_run_supervised(far: HostSpec) -> None:
    async with AgentClient.open(open_host(far), far) as agent:
        await launch(agent, record(), {"steps": 0}, source=TOYS / "toy")
        os.killpg(int((await agent.do("hello"))["pid"]), 9)
    async with AgentClient.open(open_host(far), far) as agent:
        assert (await status(agent, "toy-1")).state is RunState.RUNNING
        await stop(agent, "toy-1", grace_s=0)


async def test_the_end_of_the_session_and_of_its_process_group_leaves_the_run(far: HostSpec) -> None:
    """A session in its own process, launched, then killed with everything in its group."""
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from dflash_tui.config import HostSpec\nfrom dflash_tui.hosts import open_host\n"
        "from dflash_tui.remote.client import AgentClient\nfrom dflash_tui.remote.launch import launch\n"
        "from dflash_tui.runs import RunRecord\n"
        "async def main():\n"
        "    spec = HostSpec(kind='local', name='local', python=sys.executable, workdir=sys.argv[1])\n"
        "    async with AgentClient.open(open_host(spec), spec) as agent:\n"
        "        await launch(agent, RunRecord('toy-1', 'toy', 'train'), {'steps': 0}, source=Path(sys.argv[2]))\n"
        "        print('launched', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    argv = [sys.executable, "-c", program, str(far.workdir), str(TOYS / "toy")]
    session = await open_host(far).start(argv)
    while await session.read(1) != b"\n":
        pass
    await session.close()  # Kills its whole process group.
    async with AgentClient.open(open_host(far), far) as agent:
        found = await status(agent, "toy-1")
        assert found.state is RunState.RUNNING
        log = Path(agent.workdir, "dflash-runs/toy-1/train_log.jsonl")
        size = log.stat().st_size
        await until(lambda: log.stat().st_size > size, "the run logs on")
        await stop(agent, "toy-1", grace_s=0)


async def test_output_is_there_at_once_although_nobody_flushes(start: Start, agent: AgentClient) -> None:
    """case77: a script that prints without flushing, unmodified."""
    begun = time.monotonic()
    run = await launch(
        agent, record(), {"script": str(CASES / "case77_buffered_trainer.py"), "argv": []}, source=TOYS / "toy_case"
    )
    try:
        output = Path(str(run.record.path), "attempts/1/output.log")
        await until(lambda: output.read_bytes().startswith(b"tick 0\n"), "the first line")
        assert time.monotonic() - begun < 3
    finally:
        await stop(agent, "toy-1", grace_s=0)


async def test_long_output_is_kept_whole(agent: AgentClient) -> None:
    """case69: 5 MB of output, then the end at once."""
    expected = json.loads((CASES / "case69_long_output.expected.json").read_text())
    config = {"script": str(CASES / "case69_long_output.py"), "argv": []}
    await launch(agent, record(), config, source=TOYS / "toy_case")
    assert (await ended(agent)).state is RunState.FINISHED
    output = Path(agent.workdir, "dflash-runs/toy-1/attempts/1/output.log").read_bytes()
    assert (len(output), output.splitlines()[-1].decode()) == (expected["bytes"], expected["last_line"])


async def test_a_trainer_that_fails_at_once_says_why(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.remote.launch.SETTLE_S", 10)
    run = await start(steps=1, step_s=0, exit=1, **{"raise": "ModuleNotFoundError: No module named 'torch'"})
    assert (run.status.state, run.status.reason, run.status.code) == (RunState.FAILED, "environment", 1)
    assert run.status.note == "ModuleNotFoundError: No module named 'torch'"


async def test_an_interpreter_without_torch_is_one_sentence_and_nothing_is_left(far: HostSpec) -> None:
    bare = HostSpec(kind="local", name="local", python="/usr/bin/python3", workdir=far.workdir)
    async with AgentClient.open(open_host(bare), bare) as agent:
        with pytest.raises(
            HostError,
            match=r"no torch and no transformers and no safetensors in /usr/bin/python3 on local: "
            r"/usr/bin/python3 -m pip install torch transformers safetensors there, "
            r"or set hosts\.local\.python to another interpreter",
        ):
            await launch(agent, record(), {"steps": 1}, source=TOYS / "toy")
        assert (await status(agent, "toy-1")).state is RunState.ABSENT
        assert not Path(agent.workdir, "dflash-runs").exists()


async def test_an_interpreter_that_is_none_is_one_sentence(agent: AgentClient, tmp_path: Path) -> None:
    for python, sentence in (
        (str(tmp_path / "none"), "there is no python at"),
        ("/bin/true", "is no python that works"),
    ):
        agent.python = python
        with pytest.raises(HostError, match=sentence):
            await preflight(agent)


async def test_a_probe_names_the_interpreter_and_its_packages(agent: AgentClient) -> None:
    probe = await agent.do("probe", python=agent.python, packages=["torch", "no-such-package"])
    assert probe["python"] == ".".join(map(str, sys.version_info[:3]))
    assert probe["packages"]["torch"] and probe["packages"]["no-such-package"] is None
    assert probe["disk_free_bytes"] > 0


async def test_a_bad_run_id_never_becomes_a_path(agent: AgentClient) -> None:
    for bad in ("../up", "UP", "a/b", "", "a" * 65, ".hidden"):
        with pytest.raises(HostError, match="is no run id"):
            await launch(agent, record(bad), {"steps": 1}, source=TOYS / "toy")
    assert not list(Path(agent.workdir).glob("**/up"))


async def test_the_caller_hears_of_a_run_before_it_may_exist(agent: AgentClient) -> None:
    heard = []

    async def note(record: RunRecord, attempt: int) -> None:
        folder = Path(agent.workdir, "dflash-runs", record.run_id, "attempts", str(attempt))
        heard.append((record, attempt, folder.exists()))

    config = {"steps": 0, "on_term": "save"}
    run = await launch(agent, record(), config, source=TOYS / "toy", before=note)
    try:
        assert heard == [(run.record, 1, False)]
        assert run.record.log == f"{agent.workdir}/dflash-runs/toy-1/train_log.jsonl"
        assert (run.record.config, len(run.record.code_hash or "")) == (config, 64)
        await logged(run)
        await stop(agent, "toy-1", grace_s=10)
        await resume(agent, "toy-1", before=note)
        assert heard[1:] == [(run.record, 2, False)]
    finally:
        await stop(agent, "toy-1", grace_s=0)


async def test_nothing_starts_when_the_caller_cannot_note_it_down(agent: AgentClient) -> None:
    async def fail(record: RunRecord, attempt: int) -> None:
        raise OSError("no store")

    with pytest.raises(OSError, match="no store"):
        await launch(agent, record(), {"steps": 0}, source=TOYS / "toy", before=fail)
    assert (await status(agent, "toy-1")).state is RunState.ABSENT


async def test_the_caller_hears_nothing_of_what_is_refused(start: Start, agent: AgentClient) -> None:
    async def fail(record: RunRecord, attempt: int) -> None:
        pytest.fail("heard of a run that cannot start")

    with pytest.raises(HostError, match="is no run id"):
        await launch(agent, record("../up"), {"steps": 0}, source=TOYS / "toy", before=fail)
    await start()
    with pytest.raises(HostError, match="stop it before you resume it"):
        await resume(agent, "toy-1", before=fail)
    agent.python = "/bin/true"
    with pytest.raises(HostError, match="is no python that works"):
        await launch(agent, record("toy-2"), {"steps": 0}, source=TOYS / "toy", before=fail)


def test_the_remedy_for_an_environment_without_pip_is_that_of_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dflash_tui.remote.launch.find_spec", lambda name: None)
    here, there = HostSpec(name="local", kind="local"), HostSpec(name="gpu1", kind="ssh", address="gpu1")
    assert "pipx install --force" in remedy(here, sys.executable, "/work", ["torch"])
    assert "pipx" not in remedy(there, sys.executable, "/work", ["torch"])


async def test_resume_is_a_new_attempt_in_the_same_folder(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save", value="δ")
    first = await stop(agent, "toy-1", grace_s=10)
    assert first.checkpoint and first.checkpoint.step > 0
    again = await resume(agent, "toy-1")
    assert (again.status.state, again.status.attempt, again.already) == (RunState.RUNNING, 2, False)
    assert again.record == run.record
    await until(lambda: len([r for r in log_of(run) if r.get("event") == "start"]) == 2, "a second start")
    assert [r["seen"]["value"] for r in log_of(run) if r.get("event") == "start"] == ["δ", "δ"]
    with pytest.raises(HostError, match=r"run toy-1 on local is running \(pid \d+\): stop it before you resume it"):
        await resume(agent, "toy-1")
    assert state_of(again)["attempt"] == 2


async def test_resume_refuses_where_there_is_nothing_to_resume(start: Start, agent: AgentClient) -> None:
    with pytest.raises(HostError, match="there is no run none on local"):
        await resume(agent, "none")
    await start("done-1", steps=1)
    await ended(agent, "done-1")
    with pytest.raises(HostError, match="run done-1 on local has finished all its steps"):
        await resume(agent, "done-1")


async def test_a_run_without_a_checkpoint_begins_anew_in_its_folder(start: Start, agent: AgentClient) -> None:
    await start("bare-1", on_term="die")
    await stop(agent, "bare-1", grace_s=10)
    again = await resume(agent, "bare-1")
    assert (again.status.state, again.status.attempt, again.status.checkpoint) == (RunState.RUNNING, 2, None)
    await stop(agent, "bare-1", grace_s=10)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda run: {}, "Object missing required field `run_id`"),
        (lambda run: {**run, "run_id": "other-1"}, "it is the record of run 'other-1'"),
        (lambda run: {**run, "name": 7}, "Expected `str`, got `int`"),
        (lambda run: {**run, "kind": "\x1b[2J"}, r"Invalid enum value '\\x1b\[2J'"),
        (lambda run: {**run, "name": "\ud800"}, "surrogates not allowed"),
    ],
)
async def test_resume_does_not_believe_a_damaged_record(
    start: Start, agent: AgentClient, change: Callable[[dict[str, Any]], dict[str, Any]], why: str
) -> None:
    run = await start(on_term="save")
    await stop(agent, "toy-1", grace_s=10)
    file = Path(str(run.record.path), "run.json")
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(HostError, match=rf"toy-1/run\.json on local .*{why}.*cannot be resumed") as refused:
        await resume(agent, "toy-1")
    assert str(refused.value).isprintable()
    assert (await status(agent, "toy-1")).attempt == 1


async def test_resume_knows_better_than_the_record_where_the_run_lies(start: Start, agent: AgentClient) -> None:
    run = await start(on_term="save")
    await stop(agent, "toy-1", grace_s=10)
    file = Path(str(run.record.path), "run.json")
    elsewhere = {"host": "their-name", "path": "/elsewhere", "log": "/elsewhere/log", "of_a_later_version": 1}
    file.write_text(json.dumps({**json.loads(file.read_text()), **elsewhere}))
    assert (await resume(agent, "toy-1")).record == run.record


async def test_list_finds_all_runs_and_no_others(start: Start, agent: AgentClient) -> None:
    await start("one-1")
    await start("two-2", steps=1)
    await ended(agent, "two-2")
    runs = Path(agent.workdir, "dflash-runs")
    (runs / "Not A Run").mkdir()
    (runs / "file").write_text("")
    found = (await agent.do("list"))["runs"]
    assert [(run["run_id"], run["state"]) for run in found if run["state"] != "absent"] == [
        ("one-1", "running"),
        ("two-2", "finished"),
    ]
    assert found[-1]["record"]["name"] == "toy"


async def test_a_full_disk_refuses_a_launch_and_leaves_nothing(small_disk: Path) -> None:
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir=str(small_disk / "w"))
    async with AgentClient.open(open_host(spec), spec) as agent:
        with pytest.raises(HostError, match=r"cannot be started in .*/toy-1: the disk has \d MB free, and a run needs"):
            await launch(agent, record(), {"steps": 1}, source=TOYS / "toy")
        fill(small_disk / "filler")
        with pytest.raises(HostError, match=r"cannot be started in .*/toy-1: the disk is full: free some space"):
            await agent.do("launch", run_id="toy-1", attempt=1, record={}, spec={"argv": []}, config={})
        assert not (small_disk / "w" / "dflash-runs" / "toy-1").exists()
        assert (await status(agent, "toy-1")).state is RunState.ABSENT


async def test_an_end_is_written_down_on_a_disk_that_got_full(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dflash_tui.remote.launch.MIN_FREE_BYTES", 0)
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir=str(small_disk / "w"))
    async with AgentClient.open(open_host(spec), spec) as agent:
        config = {"steps": 3, "fill": str(small_disk / "filler"), "exit": 1}
        await launch(agent, record(), config, source=TOYS / "toy")
        found = await ended(agent)
        assert os.statvfs(small_disk).f_bavail == 0
        assert (found.state, found.reason, found.code) == (RunState.FAILED, "disk-full", 1)
        assert found.note == "the disk is full, so its last words may be missing: make room, then resume it"


async def test_what_the_config_names_must_be_on_the_host(agent: AgentClient, tmp_path: Path) -> None:
    """A launch and its plan say in one sentence all that is not there, and nothing is left behind."""
    model = tmp_path / "model"
    config = {"target": str(model), "data": {"path": None}, "init_from": "drafter", "checkpoints": [str(tmp_path)]}
    for ask in (plan_training(agent, config, TOYS / "toy"), launch(agent, record(), config, source=TOYS / "toy")):
        with pytest.raises(UsageError) as caught:
            await ask
        assert str(caught.value) == (
            f"local has no {model}/config.json (target) and no {model}/prompts.jsonl (data.path) and no drafter"
            " (init_from): say where it lies there, by its whole path: --set target=... --set data.path=..."
            " --set init_from=..."
        )
    assert not (Path(agent.workdir) / "dflash-runs").exists()
    model.mkdir()
    (model / "config.json").touch()
    (model / "prompts.jsonl").touch()
    assert await plan_training(agent, {**config, "init_from": str(model)}, TOYS / "toy")
    assert await plan_training(agent, {"target": "tiny", "data": {"path": None}}, TOYS / "toy")


async def test_a_plan_tells_what_would_run_and_does_nothing_of_it(agent: AgentClient) -> None:
    planned = await plan_training(agent, {}, TOYS / "toy")
    assert planned.argv[1:] == ["-m", "trainer", f"{agent.workdir}/dflash-runs/{RUN_ID}/attempts/1/config.json"]
    assert planned.push_bytes > 0 and planned.view.disk_free > 0 and planned.python.packages
    assert not (Path(agent.workdir) / "dflash-runs").exists()

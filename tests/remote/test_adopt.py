"""Logs of runs that we did not start: whose they are is found by looking, told as it is, and ended only as that."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dflash_tui.errors import HostError, UsageError
from dflash_tui.remote.adopt import FoundLog, adopt, look
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, log_source, sweep
from dflash_tui.remote.launch import LaunchedRun, resume, status, stop
from dflash_tui.runs import RunRecord, RunState
from dflash_tui.script_log import followable, name_of_log

from .far_side import lives, until

# Words: the log, then "open", "shut" (opened anew for each line), or "print". It goes on until it is told to end.
WRITER = """
import signal, subprocess, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
log, how = sys.argv[1:3]
if how == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", log], start_new_session=own)
            for own in (False, True)] if how in ("open", "deaf") else []
print("children", *[child.pid for child in children], file=sys.stderr, flush=True)
file = open(log, "a", buffering=1) if how in ("open", "deaf") else None
step = 0
while not asked:
    step += 1
    line = '{"step": %d}' % step
    if how == "print":
        print(line, flush=True)
    elif file:
        print(line, file=file)
    else:
        with open(log, "a") as once:
            print(line, file=once)
    time.sleep(0.01)
print('{"event": "end", "exit_code": 75}', file=file or sys.stdout)
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A program of somebody's in `tmp_path`; it and its children are gone after the test."""
    (tmp_path / "writer.py").write_text(WRITER)
    begun = []

    def begin(*words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        argv = [sys.executable, *(words or ("writer.py", str(tmp_path / LOG), "open"))]
        process = subprocess.Popen(
            argv,
            cwd=cwd or tmp_path,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield begin
    # A writer that has ended has left its children to others; they have its log among their words too.
    found = {process.pid for process in begun}
    for which in (["-f", str(tmp_path / LOG)], *(["-P", str(process.pid)] for process in begun)):
        found |= set(map(int, subprocess.run(["pgrep", *which], capture_output=True, text=True).stdout.split()))
    for pid in found:
        if lives(pid):
            os.kill(pid, signal.SIGKILL)
    for process in begun:
        process.wait()
        assert process.stderr
        process.stderr.close()


@pytest.fixture
async def log(tmp_path: Path) -> Path:
    return tmp_path / LOG


async def written(log: Path, lines: int = 3) -> None:
    await until(lambda: log.exists() and log.read_bytes().count(b"\n") >= lines, f"{lines} lines in {log}")


async def attach(agent: AgentClient, log: Path, run_id: str = "theirs") -> tuple[FoundLog, LaunchedRun]:
    found = await look(agent, str(log))
    return found, await adopt(agent, RunRecord(run_id, run_id, "adopted"), found)


async def test_who_has_it_open_is_found_followed_and_stopped_with_its_children(
    agent: AgentClient, start: Start, log: Path, stranger: subprocess.Popen[bytes]
) -> None:
    theirs = start()
    assert theirs.stderr
    children = [int(word) for word in theirs.stderr.readline().split()[1:]]
    await written(log)
    found, run = await attach(agent, log)
    assert found.process and (found.process.pid, found.how, found.others) == (theirs.pid, "open", ())
    assert found.process.argv[-2:] == (str(log), "open") and 0 <= found.process.age_s < 60
    assert (run.status.state, run.status.pid) == (RunState.RUNNING, theirs.pid)
    assert (run.record.kind, run.record.log) == ("adopted", str(log))

    ended = await stop(agent, "theirs", grace_s=10)
    assert (ended.state, ended.reason, ended.code) == (RunState.STOPPED, "stopped", 75)
    assert not any(lives(pid) for pid in [theirs.pid, *children])
    assert lives(stranger.pid)
    heard = (await sweep(agent, {"theirs": {}}, logs={"theirs": log_source(run.record)}))["theirs"]
    assert isinstance(heard, Heard) and heard.status.state is RunState.STOPPED
    assert b"".join(chunk.data for chunk in heard.chunks if chunk.stream == LOG) == log.read_bytes()
    with pytest.raises(HostError, match="nobody here knows how to start it again"):
        await resume(agent, "theirs")


async def test_one_that_does_not_listen_is_killed_after_its_grace(agent: AgentClient, start: Start, log: Path) -> None:
    theirs = start("writer.py", str(log), "deaf")
    await written(log)
    await attach(agent, log)
    ended = await stop(agent, "theirs", grace_s=0.3)
    assert (ended.state, ended.reason) == (RunState.STOPPED, "killed-after-grace")
    assert not lives(theirs.pid)


async def test_whoever_prints_into_a_tee_is_meant(agent: AgentClient, start: Start, log: Path) -> None:
    shell = f"import subprocess as s; p = s.Popen({[sys.executable, 'writer.py', '-', 'print']!r}, stdout=s.PIPE);"
    shell += f" s.run(['tee', {str(log)!r}], stdin=p.stdout)"
    start("-c", shell)
    await written(log)
    found, _ = await attach(agent, log)
    assert found.process and found.process.argv[-2:] == ("-", "print") and found.how == "open"


async def test_without_an_open_file_it_is_a_guess_by_words_or_folder(
    agent: AgentClient, start: Start, log: Path, tmp_path: Path
) -> None:
    theirs = start("writer.py", f"./{LOG}", "shut")
    start("-c", "import os, sys; os.execvp('tail', ['tail', '-f', sys.argv[1]])", str(log))
    await written(log)
    found = await look(agent, str(log))
    while found.how == "open":  # In the moment of a line it has it open.
        found = await look(agent, str(log))
    assert found.process and (found.process.pid, found.how) == (theirs.pid, "argument")
    other = tmp_path / "elsewhere.log"
    other.write_text("step 1 loss 2\n")
    found = await look(agent, str(other))
    assert found.process and (found.process.pid, found.how) == (theirs.pid, "cwd")
    # Two that may be meant are nobody.
    second = start("writer.py", f"./{LOG}", "shut")
    await until(lambda: len(Path(f"/proc/{second.pid}/cmdline").read_bytes()) > 20, "it has begun")
    found = await look(agent, str(other))
    assert found.process is None and {one.pid for one in found.others} == {theirs.pid, second.pid}


@pytest.mark.parametrize("program", ["dflash-tui", "dflash_tui/__main__.py", "dflash-agent/0ab1.pyz", "-m"])
async def test_neither_we_nor_our_ancestors_are_taken_for_the_writer(
    agent: AgentClient, start: Start, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Other commands and sessions name the log and work in its folder, and so does whoever started the agent."""
    log.write_text('{"step": 1}\n')
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ("dflash_tui/__main__.py" if program == "-m" else program)
    place.parent.mkdir(exist_ok=True)
    (place.parent / "__init__.py").touch()
    place.write_text("import sys, time\nprint(1, file=sys.stderr, flush=True)\ntime.sleep(600)\n")
    ours = start("-u", *(("-m", "dflash_tui") if program == "-m" else (str(place),)), "ingest", str(log))
    assert ours.stderr and ours.stderr.readline() == "1\n"
    found = await look(agent, str(log))
    assert (found.process, found.how, found.others) == (None, None, ())


async def test_workers_of_a_launcher_are_ended_by_it(
    agent: AgentClient, start: Start, log: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "writer.py", str(log), "shared"]
    workers = (
        f"import subprocess as s; f = open({str(log)!r}, 'a'); a = [{sys.executable!r}, '-c', 'import time; print(1,"
    )
    workers += " flush=True); time.sleep(600)']; [p.wait() for p in [s.Popen(a, stdout=f) for _ in range(2)]]"
    (tmp_path / "torchrun").write_text(workers)
    theirs = start("torchrun", *words[1:])
    await written(log, 2)
    found = await look(agent, str(log))
    assert found.process and found.process.pid == theirs.pid


async def test_one_that_ends_by_itself_is_known_by_its_log_alone(agent: AgentClient, start: Start, log: Path) -> None:
    theirs = start()
    await written(log)
    await attach(agent, log)
    theirs.terminate()
    theirs.wait(10)
    found = await status(agent, "theirs")
    assert (found.state, found.reason, found.code, found.pid) == (RunState.INTERRUPTED, "saved", 75, None)
    # What writes on in the same log is the same run, its next attempt; the end before it was the first one's.
    second = start("writer.py", str(log), "deaf")
    await written(log, log.read_bytes().count(b"\n") + 3)
    _, run = await attach(agent, log, "again")
    assert (run.record.run_id, run.status.state, run.status.attempt) == ("theirs", RunState.RUNNING, 2)
    second.kill()
    second.wait(10)
    found = await status(agent, "theirs")
    assert (found.state, found.reason, found.attempt) == (RunState.LOST, None, 2)
    assert found.note == "its process is gone, and nobody here can know how it ended"


async def test_a_log_of_nobody_is_followed_and_cannot_be_stopped(agent: AgentClient, log: Path) -> None:
    log.write_text('{"step": 1}\n')
    found, run = await attach(agent, log)
    assert (found.process, found.how, found.others) == (None, None, ())
    assert run.status.state is RunState.ORPHANED and "its process is not known" in str(run.status.note)
    with pytest.raises(HostError, match="its process is not known: end it yourself"):
        await stop(agent, "theirs", grace_s=0)
    with pytest.raises(HostError, match="is followed as run theirs already"):
        await attach(agent, log, "again")
    os.utime(log, (time.time() - 4000, time.time() - 4000))
    found_status = await status(agent, "theirs")
    assert (found_status.state, found_status.note) == (
        RunState.LOST,
        "its process is not known, and nothing was written for an hour",
    )
    assert (await attach(agent, log, "again"))[1].status.attempt == 2
    log.unlink()
    assert "there is no log any more" in str((await status(agent, "theirs")).note)


async def test_a_pid_that_somebody_else_got_is_not_taken_for_it(
    agent: AgentClient, start: Start, log: Path, stranger: subprocess.Popen[bytes]
) -> None:
    start()
    await written(log)
    _, run = await attach(agent, log)
    file = Path(str(run.record.path), "attempts/1/state.json")
    state = json.loads(file.read_text())
    state["child"] = [stranger.pid, state["child"][1] - 1000]
    file.write_text(json.dumps(state))
    assert (await status(agent, "theirs")).state is RunState.LOST
    await stop(agent, "theirs", grace_s=0)
    assert lives(stranger.pid)


async def test_what_cannot_be_followed_is_refused(agent: AgentClient, tmp_path: Path, log: Path) -> None:
    log.write_text("1")
    with pytest.raises(HostError, match=r"there is no .*/none\.log; there are train_log\.jsonl"):
        await look(agent, str(tmp_path / "none.log"))
    with pytest.raises(HostError, match="is no plain file"):
        await look(agent, str(tmp_path))
    inside = Path(agent.workdir, "dflash-runs/x/train_log.jsonl")
    inside.parent.mkdir(parents=True)
    inside.write_text("1")
    with pytest.raises(HostError, match="belongs to a run that was started from here"):
        await look(agent, str(inside))
    for content, why in (
        (b"\x1f\x8b\x08\0", "is packed"),
        (b"\x28\xb5\x2f\xfd\0", "is packed with zstd"),
        ("step 1\n".encode("utf-16"), "is UTF-16 text"),
        (b"ab\0\1\2", "is no text"),
        (b'{"best_metric": null,\n "log_history": [\n{"step": 1}]}', "a JSON document that is written anew"),
    ):
        log.write_bytes(content)
        with pytest.raises(UsageError, match=why):
            followable(await look(agent, str(log)))
    log.write_bytes(b"step 1 loss 2.0\n")
    assert followable(await look(agent, str(log))) == "text"
    # Named from the workdir as well.
    relative = os.path.relpath(log, agent.workdir)
    assert (await look(agent, relative)).path == str(log)


@pytest.mark.parametrize(
    ("path", "name"),
    [("/a/exp 7/train_log.jsonl", "exp 7"), ("/a/qwen.jsonl", "qwen"), ("/train.log", "train"), ("/a/nohup.out", "a")],
)
def test_a_run_is_named_by_its_log(path: str, name: str) -> None:
    assert name_of_log(path) == name

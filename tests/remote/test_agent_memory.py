"""What the agent does not look at again: never a file or a folder that may have changed since."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.remote.agent import logs, memory, state
from dflash_tui.remote.agent.folder import Run
from dflash_tui.runs import Cursor

STATE = {"run_id": "run-1", "where": {}, "child": [1, 0], "started": 0.0, "supervisor": None, "log_bytes": 0}
END = {"state": "failed", "reason": "error", "code": 1, "signal": None, "note": None, "said": "no", "started": 0.0}
OUTPUT = "attempts/1/output.log"

Follow = Callable[..., dict[str, bytes]]


class Clock:
    """The agent's, which may be ahead of the file system's: for it, what lies on the disk has long been there."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def time_ns(self) -> int:
        return time.time_ns() + int(self.ahead_s * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(memory, "time", clock)
    monkeypatch.setattr(memory, "_held", {})
    monkeypatch.setattr(memory, "_foreign", set())
    monkeypatch.setattr(memory, "is_local", lambda path: True)
    return clock


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was opened."""
    opened: list[str] = []
    real = os.open

    def spy(path: Any, *words: Any, **more: Any) -> int:
        opened.append(Path(path).name)
        return real(path, *words, **more)

    monkeypatch.setattr(os, "open", spy)
    return opened


@pytest.fixture
def run(tmp_path: Path, clock: Clock) -> Iterator[Run]:
    """A run whose supervisor lives."""
    run = Run(str(tmp_path), "run-1")
    Path(run.attempt(1).path).mkdir(parents=True)
    Path(run.attempt(1).file("state.json")).write_text(json.dumps(STATE))
    Path(run.path, OUTPUT).write_bytes(b"ready\n")
    Path(run.log).write_bytes(b"line 1\nline 2\n")
    with Path(run.lock).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield run


@pytest.fixture
def follow(run: Run) -> Follow:
    """Ask for what is new, as a collector does: by stream, with the reset before it."""
    cursors: dict[str, Any] = {}

    def ask() -> dict[str, bytes]:
        result, data = logs.follow(
            {"workdir": str(Path(run.path).parents[1]), "run_id": "run-1", "cursors": cursors}, 1 << 18
        )
        news, begin = {}, 0
        for chunk in result["chunks"]:
            cursors[chunk["stream"]] = asdict(Cursor(chunk["offset"], chunk["inode"], chunk["anchor"]))
            news[chunk["stream"]] = (chunk["reset"] or "").encode() + data[begin : begin + chunk["bytes"]]
            begin += chunk["bytes"]
        return news

    return ask


def test_what_rests_is_not_opened_again(run: Run, follow: Follow, clock: Clock, looks: list[str]) -> None:
    assert follow() == {logs.LOG: b"line 1\nline 2\n", OUTPUT: b"ready\n"}
    clock.ahead_s = 3
    assert follow() == {}
    looks.clear()
    assert follow() == {}
    assert looks == ["lock"], "whether its supervisor lives is asked each time"
    for file in (run.log, f"{run.path}/{OUTPUT}"):
        with Path(file).open("ab") as f:
            f.write(b"more\n")
    assert follow() == {logs.LOG: b"more\n", OUTPUT: b"more\n"}


@pytest.mark.parametrize("ahead_s", [0.0, 1.9, -3600.0], ids=["now", "in the longest tick", "clock set back"])
def test_what_has_changed_just_now_is_opened_each_time(
    run: Run, follow: Follow, clock: Clock, looks: list[str], ahead_s: float
) -> None:
    """A second change within one tick leaves size and times as they are: only a look tells."""
    clock.ahead_s = ahead_s
    follow()
    for _ in range(2):
        looks.clear()
        assert follow() == {}
        assert {"train_log.jsonl", "output.log", "state.json", "exit.json"} <= set(looks)
    before = Path(run.log).stat()
    Path(run.log).write_bytes(b"LINE 1\nLINE 2\n")
    os.utime(run.log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert follow() == {logs.LOG: b"rewrittenLINE 1\nLINE 2\n"}


def test_a_file_of_the_same_size_with_its_old_time_is_seen(run: Run, follow: Follow, clock: Clock) -> None:
    """In place its entry is new; beside it and renamed, its inode is as well."""
    log = Path(run.log)
    follow()
    clock.ahead_s = 3
    follow()
    before = log.stat()
    log.write_bytes(b"line 1\nline X\n")
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert follow() == {logs.LOG: b"rewrittenline 1\nline X\n"}
    follow()
    log.with_name("new").write_bytes(b"line 1\nline Y\n")
    os.utime(log.with_name("new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    log.with_name("new").rename(log)
    assert follow() == {logs.LOG: b"rotatedline 1\nline Y\n"}
    log.unlink()
    assert follow() == {}


def test_an_empty_file_that_was_never_read_is_no_news(run: Run, follow: Follow, clock: Clock) -> None:
    clock.ahead_s = 3
    Path(run.path, OUTPUT).write_bytes(b"")
    assert follow() == {logs.LOG: b"line 1\nline 2\n"}
    for _ in range(3):
        assert follow() == {}
    Path(run.path, OUTPUT).write_bytes(b"ready\n")
    assert follow() == {OUTPUT: b"ready\n"}


def test_another_cursor_for_the_same_file_is_no_news_twice(run: Run, clock: Clock) -> None:
    op = {"workdir": str(Path(run.path).parents[1]), "run_id": "run-1", "cursors": {logs.LOG: asdict(Cursor())}}
    clock.ahead_s = 3
    for _ in range(3):
        result, data = logs.follow(op, 1 << 18)
        assert data == b"line 1\nline 2\nready\n"
    [log, _] = result["chunks"]
    read = {logs.LOG: {name: log[name] for name in ("offset", "inode", "anchor")}}
    for _ in range(3):
        assert logs.follow({**op, "cursors": read}, 1 << 18)[1] == b"ready\n"
    assert logs.follow(op, 1 << 18)[1] == data


def test_the_end_and_a_stop_are_seen_in_a_folder_that_rested(run: Run, follow: Follow, clock: Clock) -> None:
    attempt = run.attempt(1)
    clock.ahead_s = 3
    for _ in range(3):
        follow()
        assert state.look(run)[0]["state"] == "running"
    attempt.reserve("stop.json")
    attempt.fill("stop.json", {"grace_s": 1.0})
    assert state.look(run)[0]["state"] == "stopping"
    attempt.reserve("exit.json")
    attempt.fill("exit.json", END)
    assert state.look(run)[0]["state"] == "failed"
    Path(run.path, "attempts/2").mkdir()
    assert (state.look(run)[0]["attempt"], state.look(run)[1]) == (2, [1, 2])


def test_nothing_is_remembered_of_what_another_machine_may_write(
    run: Run, follow: Follow, clock: Clock, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "is_local", lambda path: False)
    clock.ahead_s = 3
    for _ in range(3):
        looks.clear()
        follow()
        assert {"train_log.jsonl", "output.log", "state.json"} <= set(looks)


def test_what_took_long_to_read_may_have_changed_after_its_stamp(run: Run, clock: Clock) -> None:
    """A machine that was suspended in between: what was changed in the tick of the stamp has settled since."""
    reads = []

    def read(path: str) -> list[str]:
        reads.append(path)
        clock.ahead_s += 3
        return sorted(entry.name for entry in Path(path).iterdir())

    memory.recall(run.path, read)
    memory.recall(run.path, read)
    assert len(reads) == 2
    memory.recall(run.path, read)
    assert len(reads) == 2


def test_a_device_that_was_local_is_asked_again(
    run: Run, follow: Follow, clock: Clock, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was mounted is gone, and its number belongs to a share now."""
    clock.ahead_s = 3
    follow()
    follow()
    monkeypatch.setattr(memory, "is_local", lambda path: False)
    Path(run.log).write_bytes(b"line 1\nline 2\n")
    clock.ahead_s = 6
    for _ in range(2):
        looks.clear()
        assert follow() == {}
        assert "train_log.jsonl" in looks


def test_a_state_is_told_once(run: Run, clock: Clock) -> None:
    op = {"workdir": str(Path(run.path).parents[1]), "run_id": "run-1", "cursors": {}, "is_known": True}
    assert logs.follow({**op, "is_known": False}, 1 << 18)[0]["status"]["state"] == "running"
    assert logs.follow(op, 1 << 18)[0]["status"] is None
    assert logs.follow({**op, "is_known": False}, 1 << 18)[0]["status"]["state"] == "running"
    run.attempt(1).write("stop.json", {"grace_s": 1.0})
    assert logs.follow(op, 1 << 18)[0]["status"]["state"] == "stopping"
    assert logs.follow(op, 1 << 18)[0]["status"] is None

"""What tests ask of the far side: who lives there, what a run has logged, when something has happened."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.launch import LaunchedRun, status
from dflash_tui.remote.status import RunStatus

TOYS = Path(__file__).parent


def processes_below(folder: Path) -> list[int]:
    """Processes whose command line or environment names `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in words:
                found.append(int(entry.name))
    return found


def assert_nobody_lives_below(workdir: Path) -> None:
    """The end of every test: whoever is left is ended, and is a failure."""
    end = time.monotonic() + 2
    while (left := processes_below(workdir)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a test left processes behind"


def log_of(run: LaunchedRun) -> list[dict[str, Any]]:
    assert run.record.log
    try:
        return [json.loads(line) for line in Path(run.record.log).read_text().splitlines(keepends=True)]
    except FileNotFoundError:
        return []


def lives(pid: int | None) -> bool:
    """Whether a process runs. One that has ended may stay as a zombie until its parent, PID 1 for an orphan, looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


async def until(condition: Callable[[], Any], what: str, timeout_s: float = 60) -> None:
    """Wait for another process's doing; none of them raises an event here."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.01)


async def logged(run: LaunchedRun, lines: int = 2) -> None:
    assert run.record.log
    log = Path(run.record.log)
    await until(lambda: log.exists() and log.read_bytes().count(b"\n") >= lines, f"{lines} lines in {log}")


async def ended(agent: AgentClient, run_id: str = "toy-1") -> RunStatus:
    end = time.monotonic() + 60
    while not (found := await status(agent, run_id)).state.is_over:
        assert time.monotonic() < end, f"never ended: {found}"
        await asyncio.sleep(0.02)
    return found


def state_of(run: LaunchedRun) -> dict[str, Any]:
    """The supervisor's own notes on the newest attempt."""
    assert run.record.path
    value: dict[str, Any] = json.loads(Path(run.record.path, f"attempts/{run.status.attempt}/state.json").read_text())
    return value


async def kill(process: list[int]) -> None:
    """SIGKILL to a process of ours, as noted in a state: [pid, start time]; returns once it is gone."""
    os.kill(process[0], signal.SIGKILL)
    await until(lambda: not lives(process[0]), "a killed process is gone")


def fill(path: Path) -> None:
    """Leave no byte free on the disk of `path`."""
    with suppress(OSError), path.open("wb", buffering=0) as f:
        while True:
            f.write(b"x" * 4096)

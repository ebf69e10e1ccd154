"""The command line as a person has it: a process, its two streams, its exit code."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.preloaded import Preloaded

# A run of the recipe `tiny` that begins within seconds on a busy machine.
SMALL_RUN = (
    "data.num_train=16",
    "data.num_eval=2",
    "eval.num_prompts=2",
    "data.max_new_tokens=40",
    "num_anchors=4",
    "batch_tokens=256",
    "eval_every=0",
    "eval.ddtree=never",
    "save_every=1000",
    "threads=1",
)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        def refuse(token: str) -> None:
            raise AssertionError(f"{token} is not strict JSON")

        return json.loads(self.out, parse_constant=refuse)


@cache
def _preloaded() -> Preloaded:
    return Preloaded("duckdb", "dflash_tui.commands.app", "dflash_tui.control", "dflash_tui.watch", "dflash_tui.charts")


def dflash(*words: str, stdin: str = "") -> Said:
    """One command, to its end."""
    done = _preloaded().run("dflash_tui", *words, stdin=stdin)
    return Said(done.returncode, done.stdout, done.stderr)


def from_scratch(*words: str) -> Said:
    """The same in an interpreter of its own, that has loaded nothing."""
    command = [sys.executable, "-m", "dflash_tui", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return Said(done.returncode, done.stdout, done.stderr)


def on_terminal(
    *words: str, streams: Collection[str] = ("stdin", "stdout", "stderr"), module: str = "dflash_tui"
) -> Said:
    """One command, to its end, with a terminal at `streams`, which is `out`, and nothing at the others."""
    ours, its = pty.openpty()
    try:
        ends = {stream: its if stream in streams else subprocess.DEVNULL for stream in ("stdin", "stdout", "stderr")}
        process = subprocess.Popen([sys.executable, "-m", module, *words], **ends)
        os.close(its)
        shown = b""
        # Linux ends a terminal that nobody holds open with an error.
        with suppress(OSError):
            while select.select([ours], [], [], 60)[0] and (data := os.read(ours, 65536)):
                shown += data
        return Said(process.wait(20), shown.decode().replace("\r\n", "\n"), "")
    finally:
        os.close(ours)


def refused(said: Said, code: int) -> str:
    """The one line that a refused command says; nothing on stdout, no traceback."""
    assert (said.code, said.out) == (code, ""), said
    [line] = said.err.splitlines()
    assert line.startswith("dflash-tui: ")
    return line


def wait_until(what: Callable[[], Any], timeout_s: float = 60) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
    return found


@contextmanager
def watching() -> Iterator[subprocess.Popen[str]]:
    """A `dflash-tui watch` that owns the store; ended by Ctrl-C unless the test has ended it."""
    process = subprocess.Popen([sys.executable, "-m", "dflash_tui", "watch"], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    try:
        assert "collect" in process.stderr.readline()
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
        process.stderr.close()


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "COLUMNS", "DFLASH_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")

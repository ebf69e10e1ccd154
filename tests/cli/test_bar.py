"""How a long ingest tells its progress: not at all when quick, a bar on a terminal, else a line now and then."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dflash_tui.bar import IngestBar
from dflash_tui.store.base import IngestProgress

from .conftest import dflash, on_terminal

MB = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def on_screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    yield


def ingest(bar: IngestBar, clock: Clock, every_s: float, parts: int = 10) -> None:
    """100 MB and 400,000 rows in `parts`, one each `every_s`."""
    with bar:
        bar.show(IngestProgress(0, 0, 0))
        for part in range(parts + 1):
            bar.show(IngestProgress(400_000 * part // parts, 100 * MB * part // parts, 100 * MB))
            clock.now += every_s


def test_a_quick_ingest_says_nothing(clock: Clock, capsys: pytest.CaptureFixture[str], on_screen: None) -> None:
    ingest(IngestBar("log.jsonl", clock), clock, 0.04)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_a_line_comes_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    ingest(IngestBar("log\x1b.jsonl", clock), clock, 4.0)
    assert capsys.readouterr().err.splitlines() == [
        "log\\x1b.jsonl: 120,000 rows · 30 % · 2.50 MB/s · 28 s left",
        "log\\x1b.jsonl: 240,000 rows · 60 % · 2.50 MB/s · 16 s left",
        "log\\x1b.jsonl: 360,000 rows · 90 % · 2.50 MB/s · 4 s left",
    ]


def test_on_a_terminal_a_bar_is_drawn_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    shown = on_terminal(module="tests.cli.test_bar").out
    *drawn, last = re.sub(r"\x1b\[\?25[lh]", "", shown).replace("\r", "\n").splitlines()
    assert any(
        "[red]log.jsonl" in line and "200,000 rows · 50 % · 10 MB/s · 5 s left" in line for line in map(bare, drawn)
    )
    assert bare(last) == "the summary"
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1


def bare(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line)


def test_a_dumb_terminal_gets_lines(
    clock: Clock, capsys: pytest.CaptureFixture[str], on_screen: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    ingest(IngestBar("log.jsonl", clock), clock, 4.0)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_small_log_is_taken_in_without_a_word_of_progress(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n')
    assert on_terminal("ingest", str(log)).out == "log: 1 row, 0 rejected, 1 attempt, last step 1\n"


def test_ctrl_c_under_the_bar_leaves_a_terminal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {step}.5, "lr": 0.001}}\n' for step in range(800_000)))
    monkeypatch.setenv("TERM", "xterm")
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dflash_tui", "ingest", str(log)], stdin=its, stdout=its, stderr=its
    )
    os.close(its)
    shown = b""
    try:
        with suppress(OSError):
            while select.select([ours], [], [], 60)[0] and (data := os.read(ours, 65536)):
                shown += data
                if b"log.jsonl" in shown and process.poll() is None:
                    process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        os.close(ours)
    assert b"Traceback" not in shown
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h")
    assert dflash("ingest", str(log)).code == 0
    said = dflash("query", "select count(*) n, count(distinct step) d from steps")
    assert said.out == "n,d\n800000,800000\n"


if __name__ == "__main__":
    ingest(IngestBar("[red]log.jsonl", its := Clock()), its, 1.0)
    print("the summary")

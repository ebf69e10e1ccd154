"""Case 44: what is copied can be pasted, in a plain terminal, inside tmux and behind one; else it is in a file."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from .cockpit import cockpit, sees
from .scripted_seat import make_run
from .terminal import Terminal

RUNS = [make_run("v5-hard")]


async def test_copies_go_by_the_terminal_into_a_file_or_both(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "data" / "copied.txt"
    async with cockpit(RUNS) as (pilot, _):
        await pilot.press("y")
        await sees(pilot, "copied the run's id")
        assert pilot.app.clipboard == "v5-hard"
        assert not file.exists()
        monkeypatch.setenv("TERM", "screen-256color")
        await pilot.press("y")
        await sees(pilot, "copied.txt", "may keep it from your terminal")
        assert file.read_text() == "v5-hard\n"
        file.unlink()
        monkeypatch.setenv("TERM", "linux")
        await pilot.press("y")
        await sees(pilot, "wrote the run's id to")
        assert file.read_text() == "v5-hard\n"


async def test_a_tmux_that_cannot_be_reached_is_no_reason_to_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/nowhere/default,1,0")
    for path in ("/nowhere", str(Path(sys.executable).parent)):
        monkeypatch.setenv("PATH", path)
        async with cockpit(RUNS) as (pilot, _):
            await pilot.press("y")
            await sees(pilot, "copied the run's id")
            assert pilot.app.clipboard == "v5-hard"


def test_a_cell_is_copied_into_the_buffer_of_a_real_tmux(home: Path) -> None:
    if not shutil.which("tmux"):
        pytest.skip("NO TERMINAL IS TESTED HERE: no tmux: apt-get install tmux, or the like of your system")
    with tempfile.TemporaryDirectory(prefix="dflash-tmux-") as folder:
        screen = Terminal(Path(folder))
        screen.start(sys.executable, "-m", "dflash_tui", "--no-mouse")
        try:
            screen.shows("No runs yet.")
            screen.press("4", why="ask with SQL")
            screen.shows("$run has no value", "+ steps")
            screen.press("; select 'a ' || 'cell' as it", "C-r")
            screen.shows("it = a cell")
            screen.press("Escape")
            screen.shows("y copy")
            screen.press("y")
            screen.shows("copied the cell of it; in tmux")
            assert screen._run("show-buffer") == "a cell"
        finally:
            screen.end()

"""How a session begins and ends: the seat opened and closed, a crash kept in a file, runs never touched."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.runs import RunRecord
from dflash_tui.store.database import Database
from dflash_tui.ui.app import DflashApp, live

from .cockpit import cockpit, make_app, screen_lines, sees
from .scripted_seat import ScriptedSeat, make_run


def test_the_first_screen_waits_for_nothing_that_it_does_not_show() -> None:
    others = ("typer", "torch", "asyncssh", "dflash_tui.collect", "dflash_tui.remote", "dflash_tui.ui.run_screen")
    code = (
        "import sys, dflash_tui.cli, dflash_tui.commands.session, dflash_tui.ui.app, dflash_tui.watch\n"
        f"print([name for name in {others!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_quitting_closes_the_seat_and_says_what_goes_on() -> None:
    runs = [make_run("v5-hard"), make_run("old", state="finished")]
    async with cockpit(runs) as (pilot, seat):
        await sees(pilot, "v5-hard")
        await pilot.press("q")
    assert pilot.app.parting_words() == "left the session; v5-hard goes on"
    assert [what for what, _ in seat.said if what != "focus"] == []


async def test_notices_of_the_opening_are_shown() -> None:
    app = DflashApp(lambda advanced: NoticingSeat([], advanced))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await sees(pilot, "the database did not open and was rebuilt")


class NoticingSeat(ScriptedSeat):
    async def open(self) -> None:
        await super().open()
        self.notices = ["the database did not open and was rebuilt"]


class BusySeat(ScriptedSeat):
    async def open(self) -> None:
        raise StoreBusyError("the store is held by process 4121")


class BrokenSeat(ScriptedSeat):
    async def open(self) -> None:
        password = "hunter2"
        raise RuntimeError(f"a bug, and {len(password)} characters of a secret nearby")


async def test_a_seat_that_does_not_open_ends_the_session_with_its_sentence() -> None:
    app = DflashApp(lambda advanced: BusySeat([], advanced))
    with pytest.raises(StoreBusyError, match="held by process 4121"):
        await live(app, headless=True)


async def test_a_crash_is_one_sentence_that_names_its_log(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    app = DflashApp(lambda advanced: BrokenSeat([], advanced))
    with pytest.raises(DflashError, match="its log: ") as caught:
        await live(app, headless=True)
    [file] = (home / "data" / "crashes").iterdir()
    assert str(file) in str(caught.value)
    log = file.read_text()
    assert "RuntimeError: a bug" in log
    assert "test_session_life.py" in log
    assert "hunter2" not in log.replace('password = "hunter2"', "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err


async def test_the_run_asked_for_is_on_screen_at_once_and_polled_faster() -> None:
    async with cockpit([make_run("a"), make_run("b", step=77)], run_id="b") as (pilot, seat):
        await sees(pilot, "step 77/69,000")
        assert ("focus", "b") in seat.said
        await pilot.press("escape")
        await sees(pilot, "Runs 2")
        assert seat.said[-1] == ("focus", None)
        assert pilot.app.screen.subject.run_id == "b", "the list's cursor is on the run one comes from"


def test_making_an_app_asks_nothing_of_the_store() -> None:
    seat = make_app([]).seat
    assert not seat.is_open
    assert seat.store.asked == []


async def test_one_run_is_the_subject_of_all_screens(home: Path) -> None:
    app = make_app([])
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as store:
        for run_id in ("one", "two", "three"):
            store.register_run(RunRecord(run_id, run_id, "ingested"))
        app.seat.store = store  # type: ignore[attr-defined]
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await sees(pilot, "Runs 3")
            listed = [next(name for name in ("one", "two", "three") if name in line) for line in screen_lines(app)[2:5]]
            await pilot.press("enter")
            await sees(pilot, f"absent  {listed[0]}")
            await pilot.press("1", "j", "2")
            await sees(pilot, f"absent  {listed[1]}")
            await pilot.press("1", "j", "5")
            await sees(pilot, f"{listed[2]}", "[log]")
            await pilot.press("3", "4")
            await sees(pilot, f"$run = {listed[2]}")
            await pilot.press("escape", "escape", "6", "2")
            await sees(pilot, f"absent  {listed[2]}")
            await pilot.press("1", "k", "4")
            await sees(pilot, f"$run = {listed[1]}")

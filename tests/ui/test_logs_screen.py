"""The Logs screen over a real store and real files: views, following, finding, filtering."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from dflash_tui import paths
from dflash_tui.runs import RunRecord
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG
from dflash_tui.ui import logs_screen
from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.log_lines import LogLines

from .cockpit import cockpit, make_app, screen_lines, screen_text, sees, sees_no, types, until
from .logged_run import grow, logged_store, row


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_screen, "LOOK_S", 0.05)


@pytest.fixture
def logged(home: Path) -> Iterator[Database]:
    with logged_store() as store:
        yield store


def app_on(store: Database) -> DflashApp:
    app = make_app([])
    app.seat.store = store  # type: ignore[attr-defined]
    return app


def under_cursor(pilot: Pilot[None]) -> str:
    """The row that the cursor is on, as it is drawn."""
    return next((line for line in screen_lines(pilot.app) if line.startswith("▸")), "")


async def at(pilot: Pilot[None], words: str) -> None:
    await until(pilot, lambda: words in under_cursor(pilot), f"the cursor on {words!r}")


async def say(pilot: Pilot[None], key: str, words: str) -> None:
    await pilot.press(key)
    await types(pilot, words)
    await pilot.press("enter")


async def test_a_log_is_followed_searched_filtered_and_gone_through(logged: Database) -> None:
    app = app_on(logged)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await sees(pilot, "sick")
        await pilot.press("5")
        # From its end on, as the run goes on.
        await sees(pilot, "[log]", "282 lines", "▼ following", "line 282")
        await at(pilot, '"step": 240')
        grow(logged, "sick", TRAIN_LOG, (row(241) + "\n").encode())
        await at(pilot, '"step": 241')
        # Up, and the end comes no more by itself; f and G go there again.
        await pilot.press("k", "k")
        await at(pilot, '"step": 239')
        await sees_no(pilot, "following")
        grow(logged, "sick", TRAIN_LOG, (row(242) + "\n").encode())
        await sees(pilot, "284 lines")
        await at(pilot, '"step": 239')
        await pilot.press("G")
        await at(pilot, '"step": 242')
        # A step, one that is not there, a line, nonsense.
        await say(pilot, "colon", "121")
        await at(pilot, '"step": 121')
        await sees(pilot, "── attempt 2 from step 121 ──")
        await pilot.press("k", "k")
        await at(pilot, '"step": 160')
        await sees(pilot, "does not count: a later attempt logged this step again")
        await say(pilot, "colon", "9999")
        await sees(pilot, "no step 9,999 or later was logged yet")
        await say(pilot, "colon", "#101")
        await at(pilot, '"step": 101')
        await pilot.press("colon", "9")
        await sees(pilot, ": go to a step, or #line · Enter, or Esc")
        pilot.app.post_message(events.Paste("9" * 5000))
        await pilot.press("enter")
        await sees(pilot, "no step 999,999,999,999,999,999 or later was logged yet")
        await say(pilot, "colon", "soon")
        await sees(pilot, "'soon' is no step")
        # A long line says so, and opens whole as far as it goes.
        await say(pilot, "colon", "100")
        await at(pilot, "[30,")
        await pilot.press("enter")
        await sees(pilot, "the first 20,000 shown", "esc back")
        await pilot.press("escape")
        # Trouble: a NaN, half a line, what somebody printed in between.
        await pilot.press("e")
        await at(pilot, '"step": 140')
        await pilot.press("e")
        await at(pilot, "✗")
        await pilot.press("e")
        await at(pilot, "Segmentation fault \\x1b[2J")
        await sees(pilot, "no record: no JSON object", "gap: 1h 00m without a row")
        await pilot.press("e")
        await sees(pilot, "no further reject, warning or NaN")
        await pilot.press("E", "E")
        await at(pilot, '"step": 140')
        # Search: small letters find capitals; it goes round.
        await say(pilot, "slash", "nan")
        await sees(pilot, "there is no other")
        await say(pilot, "slash", '"step": 24')
        await at(pilot, '"step": 240')
        lines = app.screen.query_one(LogLines)
        hits = [piece.style for y in range(lines.size.height) for piece in lines.render_line(y) if piece.style.reverse]
        assert len(hits) > 1 and len(set(hits)) == 1, "under the cursor as elsewhere"
        await pilot.press("n", "n", "n")
        await at(pilot, '"step": 24,')
        await sees(pilot, "on from the first line")
        await pilot.press("N")
        await at(pilot, '"step": 242')
        await say(pilot, "slash", "nowhere")
        await sees(pilot, "no line here has 'nowhere'")
        # Filter: n goes among what is left; what comes is filtered too.
        await say(pilot, "ampersand", '"step": 12')
        await sees(pilot, "20 of 284 lines have")
        grow(logged, "sick", TRAIN_LOG, (row(1200) + "\n").encode())
        await sees(pilot, "21 of 285 lines have")
        await say(pilot, "ampersand", "nothing has this")
        await sees(pilot, "No line has these words.")
        await pilot.press("escape")
        await sees(pilot, "285 lines, 56.5 kB")


async def test_what_was_printed_and_what_is_no_record(logged: Database) -> None:
    app = app_on(logged)
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await sees(pilot, "sick")
        await pilot.press("5")
        await sees(pilot, "282 lines")
        await pilot.press("tab")
        await sees(pilot, "[output]", "── attempt 1 ──", "training on \\x1b[32m2 GPUs\\x1b[0m", "── attempt 2 ──")
        # A progress bar is its last state, and says so.
        await pilot.press("k")
        await sees(pilot, "↻ shards: 100%|##########| 10/10", "the last of 2 states of a progress bar")
        assert "1/10" not in screen_text(app)
        await pilot.press("E")
        await at(pilot, "RuntimeError")
        await pilot.press("E")
        await at(pilot, "Traceback")
        grow(logged, "sick", "attempts/2/output.log", b"step 300: lo")
        await sees(pilot, "step 300: lo")
        await pilot.press("tab")
        await sees(pilot, "[rejects]", "2 of 282 lines", "✗ no JSON object │ Segmentation fault")
        await pilot.press("k")
        await at(pilot, '{"step": 151, "lo')
        # Where it stands in the log.
        await pilot.press("tab")
        await sees(pilot, "[log]", '"step": 150')
        await at(pilot, '{"step": 151, "lo')
        # Escape leads to the run; the number of the screen back to the line.
        await pilot.press("escape")
        await sees_no(pilot, "[log]")
        await pilot.press("5")
        await at(pilot, '{"step": 151, "lo')
        await pilot.press("question_mark")
        await sees(pilot, "Elsewhere n is a new run")


async def test_a_run_without_a_line_and_none_at_all() -> None:
    async with cockpit([]) as (pilot, _):
        await pilot.press("5")
        await sees(pilot, "No run chosen.")
        paths.private_dir(paths.data_dir())
        with Database(paths.database_file()) as store:
            store.register_run(RunRecord("new", "new", "ingested"))
            pilot.app.seat.store = store  # type: ignore[attr-defined]
            await pilot.press("1")
            await sees(pilot, "Runs 1")
            await pilot.press("5")
            await sees(pilot, "[log]", "Nothing was logged yet.")
            await pilot.press("tab")
            await sees(pilot, "What its trainer printed is not here")
            await pilot.press("tab")
            await sees(pilot, "Every line so far is a record.")
            await pilot.press("e", "n", "enter", "y")


async def test_a_page_of_rows_is_drawn_in_time(logged: Database) -> None:
    """What is drawn is what is in sight, whatever was scrolled over meanwhile."""
    app = app_on(logged)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "sick")
        await pilot.press("5")
        await sees(pilot, "282 lines")
        lines = app.screen.query_one(LogLines)
        for key in ("g", "pagedown", "pagedown", "pageup", "G", "g"):
            await pilot.press(key)
        await at(pilot, '"step": 1,')
        assert lines.scroll_offset.y == 0 and '"step": 20,' in screen_text(app)
        before = screen_text(app)
        await pilot.press("right", "right")
        assert screen_text(app) != before
        await pilot.press("h", "left", "left")
        assert screen_text(app) == before

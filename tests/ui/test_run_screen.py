"""The dashboard, as a person at the keys meets it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.errors import TimedOutError
from dflash_tui.runs import Window
from dflash_tui.store.base import AttemptRow, PanelResult
from dflash_tui.ui.panel import Panel, fitting
from dflash_tui.ui.panel_grid import PanelGrid

from .cockpit import FROZEN_S, cockpit, screen_lines, screen_text, sees, sees_no, types, until
from .scripted_seat import make_panels, make_run

RUN = make_run("v5-hard")
TITLES = {"findings", *(panel.title for panel in make_panels(Window(), 10))}


def focused_title(app: Any) -> str:
    return app.focused.result.title if isinstance(app.focused, Panel) and app.focused.result else ""


async def test_the_dashboard_says_how_the_run_is_and_draws_its_panels() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        await sees(
            pilot,
            "● running",
            "v5-hard",
            "step 22,698/69,000",
            "33%",
            "ETA 15h 12m",
            "gpu2",
            "seen 2 s ago",
            "age 2h 11m",
        )
        await sees(pilot, "loss", "p50 0.913", "gradient norm", "max 41.5", "by sequence length", "throughput")
        await sees(pilot, "no data: tau_linear_macro was never", "logged")


async def test_a_failed_panel_says_where_and_the_others_go_on() -> None:
    async with cockpit([RUN], size=(200, 60), run_id="v5-hard") as (pilot, _):
        await sees(pilot, "✗ padding.sql:12: no such column: paddin", "p50 0.913")


async def test_tab_reaches_every_panel_and_comes_round() -> None:
    async with cockpit([RUN], size=(80, 24), run_id="v5-hard") as (pilot, _):
        reached = [focused_title(pilot.app)]
        for _ in TITLES:
            await pilot.press("tab")
            reached.append(focused_title(pilot.app))
            panel = pilot.app.focused
            await until(pilot, lambda panel=panel: panel.region in panel.screen.region, "the focused panel in sight")
        assert reached[0] == reached[-1] == "loss"
        assert set(reached) == TITLES
        await pilot.press("shift+tab")
        assert focused_title(pilot.app) == reached[-2]


async def test_the_focus_stays_in_sight_however_the_panels_are_scrolled() -> None:
    async with cockpit([RUN], size=(80, 24), run_id="v5-hard") as (pilot, _):
        grid = pilot.app.screen.query_one(PanelGrid)

        def has_focus_in_sight() -> bool:
            panel = pilot.app.focused
            return isinstance(panel, Panel) and panel.region in grid.region

        await pilot.press("tab")
        before = pilot.app.focused
        for key in ("pagedown", "pageup", "pagedown"):
            top = grid.scroll_offset.y
            await pilot.press(key)
            await until(pilot, lambda top=top: grid.scroll_offset.y != top and has_focus_in_sight(), "focus in sight")
        assert pilot.app.focused is not before
        assert isinstance(pilot.app.focused, Panel)
        assert isinstance(before, Panel)
        assert pilot.app.focused.region.x == before.region.x, "in its column"
        grid.scroll_to(y=0, animate=False)
        await until(pilot, has_focus_in_sight, "the focus in sight")
        await pilot.press("shift+tab", "shift+tab", "shift+tab")
        last = pilot.app.focused
        await until(pilot, has_focus_in_sight, "the focus in sight")
        await pilot.pause()
        assert pilot.app.focused is last, "what is given the focus keeps it"


async def test_zoom_gives_the_screen_to_one_panel_and_tab_goes_on_from_there() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        await pilot.press("z")
        await sees_no(pilot, "gradient norm")
        widest = pilot.app.screen.query_one(PanelGrid).zoomed.size.width
        assert widest > 110
        await until(pilot, lambda: seat.store.asked[-1][3] == 2 * widest, "two dots for each column asked for")
        assert seat.store.asked[-1][1] == ["loss"], "only what is in sight is asked"
        await pilot.press("tab")
        await sees(pilot, "gradient norm")
        await sees_no(pilot, "p50 0.913")
        await pilot.press("escape")
        await sees(pilot, "p50 0.913", "gradient norm", "throughput")
        await pilot.press("escape")
        await sees(pilot, "Runs 1")


async def test_log_scale_is_a_key_and_shows() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        assert pilot.app.screen.active_bindings["o"].enabled
        await pilot.press("o")
        await sees(pilot, "loss (log)")
        await pilot.press("o")
        await sees_no(pilot, "loss (log)")
        await pilot.press("shift+tab", "shift+tab")
        await until(pilot, lambda: focused_title(pilot.app) == "budget", "the table of the budget in focus")
        assert not pilot.app.screen.active_bindings["o"].enabled, "a table has no axis"


async def test_a_window_is_typed_or_chosen_and_a_wrong_one_is_explained() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        await pilot.press("w")
        await sees(pilot, "Window: now whole run")
        await types(pilot, "3,000..5,000")
        await pilot.press("enter")
        await sees(pilot, "p50 0.913 · steps 3,000..5,000")
        assert seat.store.asked[-1][2] == Window.between(3000, 5000)
        await pilot.press("w")
        await types(pilot, "3000..5000 vs 20000..21000")
        await pilot.press("enter")
        two = (Window.between(3000, 5000), Window.between(20_000, 21_000))
        await until(pilot, lambda: seat.store.stretches == two, "two windows asked for")
        assert seat.store.asked[-1][2] == Window.between(3000, 5000), "the window stays"
        await sees(pilot, "steps 3,000..5,000  3,000..5,000 vs 20,000..21,000")
        await pilot.press("w")
        await types(pilot, "yesterday")
        await pilot.press("enter")
        await sees(pilot, "'yesterday' is no window: write run, last 2000, or 3000..5000")
        await pilot.press("down", "down", "enter")
        await sees(pilot, "p50 0.913 · last 2,000 rows")
        assert seat.store.asked[-1][2] == Window.last_rows(2000)
        assert seat.store.stretches == two, "two windows stay"
        await pilot.press("w")
        await sees(pilot, "now last 2,000 rows, 3,000..5,000 vs 20,000..21,000", "whole run, and no two windows")
        await pilot.press("down", "enter")
        await until(pilot, lambda: seat.store.stretches is None, "no two windows")
        await pilot.press("w")
        await types(pilot, "20..60 vs 100..200")
        await pilot.press("enter")
        await until(pilot, lambda: seat.store.stretches is not None, "two windows over the whole run")
        await pilot.press("w")
        await sees(pilot, "Window: now whole run, 20..60 vs 100..200")
        await pilot.press("down", "enter")
        await until(pilot, lambda: seat.store.stretches is None, "the whole run takes them back")


async def test_new_rows_show_without_a_key() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        seat.store.change("v5-hard", step=23_456)
        seat.advanced("v5-hard")
        await sees(pilot, "step 23,456/69,000")


async def test_a_burst_of_news_is_few_questions_and_none_of_another_run() -> None:
    async with cockpit([RUN, make_run("other")], run_id="v5-hard") as (_, seat):
        before = 0
        while before != len(seat.store.asked):
            # What opening asks comes in up to three rounds, further apart the slower the machine is.
            before = len(seat.store.asked)
            await asyncio.sleep(1.0)
        for _ in range(200):
            seat.advanced("other")
        await asyncio.sleep(0.4)
        assert len(seat.store.asked) == before
        began = time.monotonic()
        while time.monotonic() - began < 0.7:
            seat.advanced("v5-hard")
            await asyncio.sleep(0.01)
        assert 1 <= len(seat.store.asked) - before <= 5


async def test_keys_answer_while_the_store_is_slow() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        seat.store.gate.clear()
        seat.advanced("v5-hard")
        asked = len(seat.store.asked)
        await until(pilot, lambda: len(seat.store.asked) > asked, "a question that takes its time")
        await pilot.press("question_mark")
        await sees(pilot, "Help: loss")
        assert not seat.store.gate.is_set()
        seat.store.gate.set()


async def test_a_store_in_trouble_is_said_and_the_last_picture_stays() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        seat.store.trouble = TimedOutError("the query took longer than 20 s")
        seat.advanced("v5-hard")
        await sees(pilot, "the query took longer than 20 s", "p50 0.913")
        seat.store.trouble = None
        seat.advanced("v5-hard")
        await sees_no(pilot, "the query took longer than 20 s")


async def test_a_run_that_is_not_there_is_a_sentence() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.store.known = []
        await pilot.press("enter")
        await sees(pilot, "no run v5-hard")


async def test_nothing_of_one_run_is_left_when_another_is_opened() -> None:
    async with cockpit([RUN, make_run("other")], run_id="v5-hard") as (pilot, seat):
        await pilot.press("1")
        seat.store.gate.clear()
        await pilot.press("j", "enter")
        await sees(pilot, "reading ...")
        assert "v5-hard" not in screen_text(pilot.app)
        assert "p50 0.913" not in screen_text(pilot.app)
        seat.store.gate.set()
        await sees(pilot, "other", "p50 0.913")


async def test_a_run_is_in_focus_also_under_a_dialog_and_not_once_it_is_left() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        await pilot.press("question_mark")
        await sees(pilot, "Help: loss")
        assert seat.said[-1] == ("focus", "v5-hard")
        await pilot.press("escape", "escape")
        await sees(pilot, "Runs 1")
        assert seat.said[-1] == ("focus", None)


async def test_a_state_that_is_old_when_the_run_is_opened_again_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        await sees(pilot, "● running  v5-hard", "ETA 15h 12m")
        await pilot.press("1")
        await sees(pilot, "Runs 1")
        seat.store.change("v5-hard", state="finished", step=69_000)
        monkeypatch.setattr("tests.ui.cockpit.FROZEN_S", FROZEN_S + 590)
        seat.store.gate.clear()
        await pilot.press("2")
        await sees(pilot, "● running as of 9m 50s ago  v5-hard")
        await pilot.press("left")
        await sees(pilot, "as of 9m 50s ago", "cursor")
        assert "ETA" not in screen_text(pilot.app)
        seat.store.gate.set()
        await sees(pilot, "finished  v5-hard", "step 69,000")


async def test_a_silent_host_is_said_above_the_panels() -> None:
    async with cockpit([make_run("v5-hard", no_contact_s=41.0)], run_id="v5-hard") as (pilot, seat):
        await sees(pilot, "● running", "no contact for 41 s", "p50 0.913")
        seat.silent_hosts["gpu2"] = "no contact for 41 s, next try in 5 s: Connection refused"
        seat.advanced("v5-hard")
        await sees(pilot, "next try in 5 s: Connection refused", "p50 0.913")


async def test_the_question_behind_a_panel_can_be_read() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        await pilot.press("e")
        await sees(pilot, "loss.sql", "-- title: loss")
        await pilot.press("escape")
        await sees(pilot, "p50 0.913")


async def test_numbers_are_copied_by_the_terminal_or_into_a_file(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        await pilot.press("y")
        await sees(pilot, "copied the numbers of loss")
        assert pilot.app.clipboard.startswith("step\tp10\tp50\tp90\n0\t")
        monkeypatch.setenv("TERM", "linux")
        await pilot.press("y")
        await sees(pilot, "copied.txt")
        assert (home / "data" / "copied.txt").read_text().startswith("step\tp10")


async def test_a_long_table_scrolls_under_its_heading() -> None:
    rows = [["noise_std", f"at_{i}", 8e-06 * (i + 1), 1, ""] for i in range(60)]
    table = PanelResult(
        "vitals", "vitals", "table", "rows", columns=["metric", "stat", "value", "n", "note"], rows=rows
    )
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        seat.store.panels = lambda window, buckets: [table]
        await pilot.press("tab")
        await pilot.pause()
        await pilot.press("1")
        seat.store.known = [make_run("w")]
        seat.advanced(None)
        await sees(pilot, " w ")
        await pilot.press("enter")
        await sees(pilot, "at_0", "8e-06", "more rows")
        await pilot.press("tab", "j", "j")
        await sees_no(pilot, "at_1 ")
        await sees(pilot, "stat", "at_2")
        await pilot.press("G")
        await sees(pilot, "at_59", "0.0004800")


async def test_resumes_are_marked_and_the_attempt_is_named() -> None:
    run = make_run("v5-hard", attempt=2)
    async with cockpit([run], size=(200, 60)) as (pilot, seat):
        seat.store.attempts = [
            AttemptRow(1, 1, 1, 1, 11_000, 0.0, None),
            AttemptRow(2, 1, 11_001, 11_000, 2**63 - 1, 1.0, 11_000),
        ]
        await pilot.press("enter")
        await sees(pilot, "attempt 2")
        assert "┊" in screen_text(pilot.app)


async def test_a_run_that_is_being_opened_has_its_name_in_the_header() -> None:
    async with cockpit([make_run("v5-hard", name="a name")]) as (pilot, seat):
        await sees(pilot, "a name")
        seat.store.gate.clear()
        await pilot.press("enter")
        await sees(pilot, "reading ...")
        assert screen_lines(pilot.app)[0].strip() == "a name"
        seat.store.gate.set()
        await sees(pilot, "● running")


async def test_a_panel_below_says_no_more_that_nothing_is_there_once_the_run_has_gone_on() -> None:
    empty = PanelResult("zzz", "the last", "line", "empty", why="nothing has been logged yet", order=999)
    async with cockpit([RUN], size=(80, 24)) as (pilot, seat):
        seat.store.panels = lambda window, buckets: [*make_panels(window, buckets), empty]
        await pilot.press("enter")
        await sees(pilot, "p50 0.913")
        seat.store.change("v5-hard", step=22_750)
        seat.advanced("v5-hard")
        await sees(pilot, "step 22,750")
        seat.store.gate.clear()
        await pilot.press("end", *["pagedown"] * 4)
        await sees(pilot, "the last", "reading ...")
        assert "nothing has been logged yet" not in screen_text(pilot.app)
        seat.store.gate.set()
        await sees(pilot, "nothing has been logged yet")


async def test_the_screen_of_no_run_teaches_what_to_press() -> None:
    async with cockpit([]) as (pilot, _):
        await pilot.press("2")
        await sees(pilot, "No run chosen.", "1 lists the runs")
        await pilot.press("tab", "z", "w", "o", "e", "y", "X", "r", "1")
        await sees(pilot, "No runs yet.")


def test_a_headline_loses_whole_parts_never_digits() -> None:
    headline = "p50 0.068 · p95 0.37 · max 41.5"
    assert [fitting(headline, width) for width in (40, 31, 30, 20, 9, 8)] == [
        headline,
        headline,
        "p50 0.068 · p95 0.37",
        "p50 0.068 · p95 0.37",
        "p50 0.068",
        "",
    ]

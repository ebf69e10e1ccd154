"""The Query screen, as a person at the keys meets it, over a scripted store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dflash_tui.errors import QueryError, TimedOutError, UsageError
from dflash_tui.store.base import PanelResult, ResolvedWindow
from dflash_tui.store.panel_windows import bucket_width
from dflash_tui.ui.commands import actions

from .cockpit import cockpit, screen_lines, screen_text, sees, sees_no, types, until
from .scripted_seat import make_run

RUN = make_run("v5-hard")
STEPS = [(step, 1 + 100 / step, None if step % 7 else "[red]宽\x1b[31m") for step in range(1, 2001)]
WHOLE = ResolvedWindow("run", 22_698, 0, 22_698)
ANSWER = (["step", "loss", "note"], ["BIGINT", "DOUBLE", "VARCHAR"], STEPS)


@asynccontextmanager
async def query_screen(answer: Any = ANSWER, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Any, Any]]:
    """The screen with an answer that is there as soon as it is asked for, as (pilot, seat)."""
    async with cockpit([RUN], size) as (pilot, seat):
        seat.store.answer = answer
        await pilot.press("4")
        await sees(pilot, "$run = v5-hard")
        yield pilot, seat


async def writes(pilot: Pilot[None], text: str) -> None:
    pilot.app.screen.query_one("#sql").write(text)  # type: ignore[attr-defined]
    await pilot.pause()


def assert_is_typing(pilot: Pilot[None]) -> None:
    assert pilot.app.screen.focused is pilot.app.screen.query_one("#sql")


async def test_the_statement_under_the_cursor_is_asked_with_its_parameters_alone() -> None:
    async with query_screen() as (pilot, seat):
        await sees(pilot, "ctrl+r runs the statement", "+ steps", "panels", "1 run")
        names = {action.name for action in actions(pilot.app.screen)}
        assert {"run", "chart", "file", "panel", "before", "tables", "back"} <= names
        assert not {"stop", "resume"} & names
        await pilot.press("ctrl+r")
        await sees(pilot, "1-24 of 2,000 rows", "step = 1", "[red]宽\\x1b[31m", "NULL")
        [(sql, params)] = seat.store.queries
        assert sql.startswith("select step, loss")
        assert params == {"run": "v5-hard"}
        await writes(pilot, "select 1;\nselect $first, $width from steps;\nselect 3")
        await pilot.press("up", "f5")
        await until(pilot, lambda: len(seat.store.queries) == 2, "a second question")
        assert seat.store.queries[1][0].strip() == "select $first, $width from steps"
        assert seat.store.queries[1][1] == {"first": 0, "width": bucket_width(WHOLE, 2 * 85)}
        await pilot.press("ctrl+home", "f5")
        await until(pilot, lambda: len(seat.store.queries) == 3, "a third question")
        assert seat.store.queries[2][0].strip() == "select 1"


async def test_what_is_selected_is_asked_alone_and_a_cell_is_shown_in_full() -> None:
    plan = "┌───┐\n│ a │\n└───┘ [red]\x1b[31m"
    async with query_screen((["plan", "extra"], ["VARCHAR", "JSON"], [(plan, '{"lr": {"Muon": 1}, "note": "x"}')])) as (
        pilot,
        seat,
    ):
        await writes(pilot, "select 1, 2 from steps")
        await pilot.press(*["left"] * 11, *["shift+left"] * 3, "ctrl+r")
        await sees(pilot, "1-1 of 1 row")
        assert seat.store.queries[-1][0] == ", 2"
        await pilot.press("escape", "enter")
        await sees(pilot, "│ a │", "[red]\\x1b[31m")
        await pilot.press("escape", "l", "enter")
        await sees(pilot, 'note  "x"')
        await pilot.press("y")
        await sees(pilot, "copied the cell of extra")


async def test_the_answer_is_walked_copied_from_and_drawn() -> None:
    async with query_screen() as (pilot, _):
        await pilot.press("f8")
        await sees(pilot, "there is no answer to draw yet")
        await pilot.press("ctrl+r")
        await sees(pilot, "1-24 of 2,000 rows")
        await pilot.press("escape", "G", "l")
        await sees(pilot, "1,977-2,000 of 2,000 rows", "loss = 1.05")
        await pilot.press("y")
        await sees(pilot, "copied the cell of loss")
        assert pilot.app.clipboard == "1.05"
        await pilot.press("Y")
        await sees(pilot, "copied 2,000 rows")
        assert pilot.app.clipboard.startswith("step\tloss\tnote\n1\t101.0\t\n")
        await pilot.press("g", "pagedown", "k", "h")
        await sees(pilot, "step = 23")
        for words in ("loss over step", "… 1", "loss · n 2,000", "step = 23"):
            await pilot.press("c")
            await sees(pilot, words)
            for size in ((1, 1), (45, 11), (7, 40), (120, 40)):
                await pilot.resize_terminal(*size)


async def test_no_rows_no_numbers_and_more_rows_than_are_kept_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with query_screen((["a"], ["VARCHAR"], [])) as (pilot, seat):
        await pilot.press("ctrl+r")
        await sees(pilot, "no rows")
        seat.store.answer = (["a"], ["VARCHAR"], [("x",)])
        await pilot.press("ctrl+r")
        await sees(pilot, "1-1 of 1 row")
        await pilot.press("f8")
        await sees(pilot, "no chart: no column of this answer is one of numbers")
        monkeypatch.setattr("dflash_tui.ui.packed_rows.PackedRows.__init__.__defaults__", (1000, 1 << 20))
        seat.store.answer = ANSWER
        await pilot.press("ctrl+r")
        await sees(pilot, "of 1,000 rows kept, there are more: w writes all")


def are_under_the_word(lines: list[str]) -> bool:
    row = next((row for row, line in enumerate(lines) if "^^^^^" in line), 0)
    return "losss" in lines[row - 1] and lines[row - 1].index("losss") == lines[row].index("^^^^^")


async def test_an_error_is_a_sentence_with_its_place_and_carets_under_the_word() -> None:
    async with query_screen(QueryError("there is no column 'losss' here; did you mean 'loss'?", 16)) as (pilot, seat):
        await writes(pilot, "select 1;\n\nselect loss,\n  losss from steps")
        await pilot.press("ctrl+r")
        await sees(pilot, "✗ line 4, column 3: there is no column 'losss' here; did you mean 'loss'?")
        lines = [line for line in screen_lines(pilot.app) if "^^^^^" in line or "4   losss" in line]
        assert lines[-2].index("losss") == lines[-1].index("^^^^^")
        words = ", ".join(f"column_{i}" for i in range(20))
        seat.store.answer = QueryError("there is no column 'losss' here", 10 + len(words))
        await writes(pilot, f"select {words}, losss from steps")
        await pilot.press("ctrl+r")
        await sees(pilot, "✗ line 1")
        for width in (120, 60, 100):
            await pilot.resize_terminal(width, 30)
            await until(
                pilot, lambda: are_under_the_word(screen_lines(pilot.app)), f"the carets under the word at {width}"
            )
        for error in (UsageError("only SELECT is allowed in a query, not DROP"), TimedOutError("took longer than 5 s")):
            seat.store.answer = error
            await pilot.press("ctrl+r")
            await sees(pilot, f"✗ {error}")
        await writes(pilot, "select $runn")
        await pilot.press("ctrl+r")
        await sees(pilot, "✗ line 1, column 8: $runn has no value here; did you mean 'run'?")
        await writes(pilot, " ")
        await pilot.press("ctrl+r")
        await sees(pilot, "there is no query yet")


async def test_keys_answer_while_a_query_runs_and_a_second_one_does_not_queue_up() -> None:
    async with query_screen() as (pilot, seat):
        seat.store.gate.clear()
        await pilot.press("ctrl+r")
        await sees(pilot, "esc cancels")
        await types(pilot, " x")
        await sees(pilot, "limit 100 x")
        await pilot.press("ctrl+r", "ctrl+r")
        await sees(pilot, "a query runs already: esc cancels it")
        await pilot.press("f1")
        await sees(pilot, "Help:", "Run what is selected, else the statement under", "The query that was run before.")
        await pilot.press("escape", "shift+tab", "j", "enter")
        await sees(pilot, "- attempts")
        assert len(seat.store.queries) == 1
        await pilot.press("escape")
        await sees(pilot, "the query was cancelled")
        seat.store.gate.set()
        await pilot.press("ctrl+r")
        await sees(pilot, "of 2,000 rows")


async def test_history_comes_back_also_in_the_next_session() -> None:
    async with query_screen() as (pilot, _):
        for sql in ("select 1", "select 2"):
            await writes(pilot, sql)
            await pilot.press("ctrl+r")
            await sees(pilot, "of 2,000 rows")
        await writes(pilot, "draft")
        await pilot.press("ctrl+up", "ctrl+up")
        await sees(pilot, "select 1")
        await pilot.press("ctrl+down", "ctrl+down")
        await sees(pilot, "draft")
    async with query_screen() as (pilot, _):
        await sees(pilot, "select 2")


async def test_names_are_completed_as_they_are_typed() -> None:
    async with query_screen() as (pilot, _):
        await writes(pilot, "")
        await sees(pilot, "+ steps")
        await types(pilot, "select grad")
        await sees(pilot, "grad_clipped")
        await pilot.press("tab")
        await types(pilot, " from st")
        await sees(pilot, "steps view")
        await pilot.press("tab")
        await types(pilot, " where run = 'v")
        await sees(pilot, "v5-hard run")
        await pilot.press("down", "enter", "enter")
        await types(pilot, "or qu")
        await sees(pilot, "quantile(")
        await pilot.press("escape")
        await sees_no(pilot, "quantile(")
        assert pilot.app.screen.query_one("#sql").text == "select grad_norm from steps where run = 'v5-hard'\nor qu"


async def test_the_catalog_opens_tables_and_brings_columns_and_panels() -> None:
    async with query_screen(size=(80, 24)) as (pilot, _):
        assert "+ steps" not in screen_text(pilot.app)
        await writes(pilot, "")
        await pilot.press("f2")
        await sees(pilot, "+ steps")
        await pilot.press("j", "j", "j", "l", "j", "enter")
        assert pilot.app.screen.query_one("#sql").text == "run"
        await pilot.press("shift+tab", "h")
        await sees(pilot, "+ steps")
        await pilot.press("G", "k", "enter")
        await sees(pilot, "positions")
        await pilot.press("j", "enter")
        assert "-- title:" in pilot.app.screen.query_one("#sql").text
        await pilot.press("f2")
        await sees_no(pilot, "TABLES")


async def test_e_brings_the_sql_of_a_panel_with_its_run_and_window_also_from_a_zoomed_one() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        seat.store.answer = ANSWER
        await pilot.press("z", "w")
        await types(pilot, "3000..5000")
        await pilot.press("enter")
        await sees(pilot, "p50 0.913 · steps 3,000..5,000")
        await pilot.press("e")
        await sees(pilot, "e edit in Query")
        await pilot.press("e")
        await sees(pilot, "$run = v5-hard, steps 3,000..5,000", "of 2,000 rows")
        assert "-- title: loss" in pilot.app.screen.query_one("#sql").text
        assert seat.store.queries[-1][1]["run"] == "v5-hard"
        await pilot.press("escape", "escape")
        await sees(pilot, "p50 0.913")
        await pilot.press("e", "e")
        await sees(pilot, "$run = v5-hard, steps 3,000..5,000")
        assert_is_typing(pilot)


async def test_whoever_comes_types_and_from_the_answer_a_key_leads_back_into_the_editor() -> None:
    async with query_screen() as (pilot, _):
        await pilot.press("ctrl+r")
        await sees(pilot, "of 2,000 rows")
        await pilot.press("escape")
        await sees(pilot, "i edit")
        await pilot.press("question_mark")
        await sees(pilot, "Back into the editor", "from the tables into the editor")
        await pilot.press("escape")
        assert pilot.app.screen.focused is not pilot.app.screen.query_one("#sql"), "a dialog moves no focus"
        await pilot.press("i")
        assert_is_typing(pilot)
        await sees_no(pilot, "i edit")
        await pilot.press("escape", "4")
        assert_is_typing(pilot)
        await pilot.press("escape", "escape")
        await sees(pilot, "Runs")
        await pilot.press("4")
        await sees(pilot, "$run = v5-hard")
        assert_is_typing(pilot)
        await types(pilot, " abcL")
        await sees(pilot, "limit 100 abcL")


async def test_a_query_is_saved_as_a_panel_and_written_into_a_file(home: Path, tmp_path: Path) -> None:
    async with query_screen() as (pilot, _):
        await pilot.press("ctrl+r")
        await sees(pilot, "of 2,000 rows")
        await pilot.press("f8")
        await sees(pilot, "loss over step")
        await pilot.press("ctrl+s")
        await types(pilot, "Mine")
        await pilot.press("enter")
        await sees(pilot, "'Mine' is no name of a panel")
        await pilot.press("ctrl+u")
        await types(pilot, "loss")
        await pilot.press("enter")
        await sees(pilot, "comes with dflash-tui")
        await types(pilot, "-of-mine")
        await pilot.press("enter")
        await sees(pilot, "the panel loss-of-mine is on the Run screen")
        assert "-- chart: line x=step y=loss" in (home / "config/panels/loss-of-mine.sql").read_text()
        for ending in ("csv", "jsonl"):
            await pilot.press("f9", "ctrl+u")
            await types(pilot, str(tmp_path / f"a.{ending}"))
            await pilot.press("enter")
            await until(pilot, (tmp_path / f"a.{ending}").exists, "a file")
        await sees(pilot, "wrote 2,000 rows,")
        assert (tmp_path / "a.csv").read_text().startswith("step,loss,note\n1,101.0,\n")
        assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2000
        await pilot.press("f9", "ctrl+u")
        await types(pilot, str(tmp_path / "a.xls"))
        await pilot.press("enter")
        await sees(pilot, "no format ends with .xls")


async def test_what_fails_becomes_no_panel_and_takes_none_away(home: Path) -> None:
    async with query_screen(QueryError("there is no column 'losss' here", 8)) as (pilot, seat):
        await pilot.press("ctrl+r")
        await sees(pilot, "✗ line 1, column 8")
        await pilot.press("ctrl+s")
        await sees(pilot, "no panel of what has just failed")
        await writes(pilot, "select loss from steps")
        for state in ("rows", "failed"):
            panel = PanelResult("mine", "mine", "table", state, why="mine.sql:7: no such column")
            seat.store.panels = lambda window, buckets, panel=panel: [panel]
            await pilot.press("ctrl+s")
            await sees(pilot, "Save this query as a panel called")
            await types(pilot, "mine")
            await pilot.press("enter")
            if state == "failed":
                await sees(pilot, "replaces")  # A word: where lines break follows from the folder.
                await pilot.press("enter")
            else:
                await sees(pilot, "the panel mine is on the Run screen; deleting")
            await writes(pilot, "select losss from steps")
        await sees(pilot, "the panel mine is not saved, it would fail in every")
    assert "select loss from" in (home / "config/panels/mine.sql").read_text()


async def test_without_a_run_and_without_rows_it_says_what_to_do() -> None:
    async with cockpit([]) as (pilot, seat):
        seat.store.answer = (["run", "n"], ["VARCHAR", "BIGINT"], [])
        await pilot.press("4")
        await sees(pilot, "no run: $run has no value", "select run, count(*)")
        await pilot.press("ctrl+r")
        await sees(pilot, "no rows")
        await writes(pilot, "select $run")
        await pilot.press("ctrl+r")
        await sees(pilot, "$run has no value here; open a run (1), and $run is that run")
        seat.store.trouble = TimedOutError("the store is busy")
        await writes(pilot, "select 1")
        await pilot.press("ctrl+r")
        await sees(pilot, "✗ the store is busy")

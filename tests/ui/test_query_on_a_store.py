"""The Query screen over the real database: long queries, large answers, panels taken along."""

import asyncio
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from textual.pilot import Pilot

from dflash_tui.runs import Window
from dflash_tui.store.access import writer
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.parameters import parameters_of
from dflash_tui.ui.asked_query import AskedQuery
from dflash_tui.ui.packed_rows import _MOST_OPEN, PackedRows
from dflash_tui.ui.sql_text import statements

from .cockpit import screen_text, sees, types, until
from .test_screens_on_a_store import session, story_lines

ENDLESS = "select count(*) from range(100000000) a, range(100000) b"


async def asks(pilot: Pilot[None], sql: str) -> None:
    pilot.app.screen.query_one("#sql").write(sql)  # type: ignore[attr-defined]
    await pilot.press("ctrl+r")


@pytest.mark.usefixtures("busy_process")
async def test_case41_keys_answer_during_a_long_query_which_can_be_cancelled() -> None:
    async with session((120, 40)) as pilot:
        database: Any = pilot.app.seat._session.store  # type: ignore[attr-defined]
        await pilot.press("4")
        await sees(pilot, "no run", "+ steps")
        await asks(pilot, ENDLESS)
        await until(pilot, lambda: database.num_running == 1, "a query under way")
        await pilot.press("enter")
        for number in range(2):
            await types(pilot, str(number))
            await sees(pilot, f"2  {'01'[: number + 1]} ")
        await pilot.press("ctrl+r", "1", "4", "ctrl+r")
        assert database.num_running == 1, "no second one waits behind the first, and none was cut off"
        await pilot.press("escape")
        await sees(pilot, "the query was cancelled")
        await until(pilot, lambda: database.num_running == 0, "nothing under way")
        await asks(pilot, "select 6 * 7 as answer")
        await sees(pilot, "answer = 42")
        await asks(pilot, ENDLESS)
        await until(pilot, lambda: database.num_running == 1, "a query under way")
    assert database.num_running == 0, "who leaves cancels"


async def test_case42_a_large_answer_is_there_at_once_and_only_what_is_in_sight_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    add = PackedRows.add

    def slowly(rows: PackedRows, batch: Any) -> bool:
        if len(rows):
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(timeout=30)
        return add(rows, batch)

    monkeypatch.setattr(PackedRows, "add", slowly)
    async with session((120, 40)) as pilot:
        await pilot.press("4")
        await asks(pilot, "select range as step, range * 0.5 as loss, 'x' || range as name from range(200000)")
        await sees(pilot, "2,048 rows so far", "x23")
        gate.set()
        await until(pilot, lambda: "of 200,000 rows" in screen_text(pilot.app), "all rows", 30.0)
        rows = pilot.app.screen._view.asked.rows  # type: ignore[attr-defined]
        await pilot.press("escape", "G")
        await sees(pilot, "199,977-200,000 of 200,000 rows", "x199999")
        await pilot.press("pageup", "k", "g", "pagedown", "l")
        await sees(pilot, "loss = 11.5")
        assert len(rows._open) <= _MOST_OPEN
        assert sum(map(len, rows._pages)) < 25 * 200_000, "bytes, packed"
        await pilot.press("c")
        await sees(pilot, "loss over step")


async def test_an_answer_goes_into_parquet_with_its_own_types(tmp_path: Path) -> None:
    file = tmp_path / "answer.parquet"
    async with session((120, 40)) as pilot:
        await pilot.press("4")
        await asks(pilot, "select range as n, range / 2 as half from range(3000)")
        await sees(pilot, "of 3,000 rows")
        await pilot.press("f9", "ctrl+u")
        await types(pilot, str(file))
        await pilot.press("enter")
        await until(pilot, file.exists, "the file", 20.0)
        await sees(pilot, "wrote 3,000 rows")
    with duckdb.connect() as db:
        assert db.execute(f"select count(*), sum(half), typeof(max(n)) from '{file}'").fetchall() == [
            (3000, 2_249_250.0, "BIGINT")
        ]


async def test_the_guard_and_mistakes_are_told_as_the_command_tells_them() -> None:
    async with session((120, 40)) as pilot:
        await pilot.press("4")
        for sql, words in (
            ("select 1 from stepz", "✗ line 1, column 15: there is no table 'stepz'; did you mean 'steps'?"),
            ("select losss\nfrom steps", "✗ line 1, column 8: there is no column 'losss' here; did you mean 'loss'?"),
            ("drop table runs", "only SELECT is allowed in a query, not DROP"),
            (
                "select * from read_text('/etc/passwd')",
                "line 1, column 15: the table function 'read_text' is not allowed",
            ),
        ):
            await asks(pilot, sql)
            await sees(pilot, words)


def test_every_panel_that_comes_along_runs_when_its_sql_is_edited(tmp_path: Path) -> None:
    log = tmp_path / "story.jsonl"
    log.write_text(story_lines(1, 300))
    with writer() as store:
        store.ingest("story", log)
        for panel in load_panels():
            for statement in statements(panel.sql):
                asked = AskedQuery(statement, lambda store: parameters_of(store, "story", Window()), time.monotonic)
                asked.read(store)
                assert asked.columns, panel.name

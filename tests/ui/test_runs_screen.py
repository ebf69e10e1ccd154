"""The list of runs, as a person at the keys meets it."""

import threading
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.store.base import Finding
from dflash_tui.ui.key_line import KeyLine
from dflash_tui.ui.run_columns import COLUMNS, Figures, RunRow, Verdict
from dflash_tui.ui.run_list import RunList
from dflash_tui.ui.verdicts import ask_verdicts, due

from .cockpit import cockpit, screen_lines, screen_text, sees, sees_no, types, until
from .scripted_seat import ScriptedStore, make_run
from .test_findings import FINDINGS

FLEET = [
    make_run("v5-hard", step=22_698),
    make_run("v4-kl07", no_contact_s=41.0, step=18_220),
    make_run("v3", state="failed", reason="oom-gpu", code=137, age_s=273_600.0, no_contact_s=None),
    make_run("demo", host="local", state="finished", reason="completed", step=600, total_steps=600),
    make_run("golden", host=None, kind="ingested", state="absent", total_steps=None, age_s=None, no_contact_s=None),
]


def line_of(pilot: object, word: str) -> str:
    return next(line for line in screen_lines(pilot.app) if word in line)


async def test_each_run_is_a_line_that_says_its_state_in_a_word_and_a_sign() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await sees(pilot, "26,146")
        assert "● running" in line_of(pilot, "v5-hard")
        assert "22,698/69,000  33%" in line_of(pilot, "v5-hard")
        assert "0.913" in line_of(pilot, "v5-hard")
        assert "silent 41 s" in line_of(pilot, "v4-kl07")
        assert "● running" in line_of(pilot, "v4-kl07"), "losing contact never changes a run's last known state"
        assert "✗ failed: oom-gpu" in line_of(pilot, "v3")
        assert "3d 04h" in line_of(pilot, "v3")
        assert "✓ finished" in line_of(pilot, "demo")
        assert "○ absent" in line_of(pilot, "golden")
        await sees(pilot, "Runs 5 · 2 running · 1 without contact")


async def test_what_the_checks_find_of_a_run_stands_in_its_line_and_what_cannot_be_checked_has_no_count() -> None:
    is_asked = threading.Event()

    def check(run_id: str, baseline: str | None = None) -> list[Finding]:
        is_asked.wait(timeout=10)
        if run_id == "v3":
            raise DflashError("no such table")
        return FINDINGS if run_id == "v4-kl07" else []

    async with cockpit(FLEET) as (pilot, seat):
        seat.store.check = check
        seat.store.known = [replace(run, state="lost") for run in FLEET]
        seat.advanced(None)
        await until(pilot, lambda: "…" in line_of(pilot, "v4-kl07"), "that it is not known yet")
        is_asked.set()
        await until(pilot, lambda: "✖ 1 ▲ 2" in line_of(pilot, "v4-kl07"), "findings counted")
        await until(pilot, lambda: "…" not in line_of(pilot, "v3"), "no count")
        await until(pilot, lambda: "✓" in line_of(pilot, "v5-hard"), "another without any")
        assert "✓" not in line_of(pilot, "v3") and "✖" not in line_of(pilot, "v3")
        await pilot.press(*["s"] * 7)
        await sees(pilot, "by FOUND ▼", "✖ 1 ▲ 2 found")
        assert names_in_order(pilot)[0] == "v4-kl07"


def test_a_run_is_checked_again_when_it_ended_or_went_on_for_a_while() -> None:
    run = make_run("v5")
    [verdict] = ask_verdicts([run], 100.0, ScriptedStore([run])).values()
    known = {"v5": verdict}
    assert verdict.badge == "✓" and due([run], {}, 100.0) == [run]
    assert due([replace(run, step=30_000)], known, 129.0) == due([run], known, 200.0) == []
    for changed, now in ((replace(run, step=30_000), 131.0), (replace(run, state="failed"), 100.0)):
        assert due([changed], known, now) == [changed]


@pytest.mark.parametrize(
    ("step", "total_steps", "words"),
    [
        (22_698, 69_000, "22,698/69,000  33%"),
        (1_000_000, 73_290, "1M/73,290 1364%"),
        (123_456, 789_012, "123.5k/789k  16%"),
        (10**15, 1, "1e+15/1 >9999%"),
        (10**15, None, "1e+15"),
    ],
)
def test_no_number_of_a_line_is_cut(step: int, total_steps: int | None, words: str) -> None:
    row = RunRow(
        make_run("v5", step=step, total_steps=total_steps),
        Figures(-9.8991234e15, 750_000_000.0),
        verdict=Verdict("running", step, 0.0, (12, 10)),
    )
    told = {column.title: (column.cell(row).text, column.width) for column in COLUMNS}
    assert [told[title][0] for title in ("LOSS p50", "TOK/S", "FOUND")] == ["-9.9e+15", "750M", "✖12▲10"]
    assert told["STEP"][0] == words
    assert all(len(text) <= width for text, width in told.values())
    found = next(column for column in COLUMNS if column.title == "FOUND")
    looks = [found.cell(row._replace(verdict=Verdict("running", 1, 0.0, n))).look for n in ((1, 2), (0, 2), (0, 0))]
    assert looks == ["tone--bad", "tone--warn", "list--quiet"]


async def test_names_have_the_room_that_other_columns_have_no_use_for() -> None:
    async with cockpit([make_run("v5-hardCE-gamma7-split"), *FLEET[3:]]) as (pilot, seat):
        await sees(pilot, "v5-hardCE-gamma7-split ")
        seat.store.change(FLEET[3].run_id, state="failed", reason="oom-gpu")
        seat.store.change(FLEET[4].run_id, no_contact_s=41.0, age_s=41.0, state="running")
        seat.advanced(None)
        await sees(pilot, "silent 41 s", "✗ failed", "v5-hardCE-gamma7-split ")


async def test_an_empty_store_teaches_the_next_key() -> None:
    async with cockpit([], size=(80, 24)) as (pilot, _):
        await sees(pilot, "No runs yet.", "n   a new run", "dflash-tui demo")
        await pilot.press("enter", "X", "r", "j", "G", "y")
        await sees(pilot, "No runs yet.")


async def test_the_filter_narrows_as_it_is_typed_stays_visible_and_esc_clears_it() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await pilot.press("slash")
        await types(pilot, "state:fa")
        await sees(pilot, "v3", "Runs 1 of 5")
        assert "v5-hard" not in screen_text(pilot.app)
        await types(pilot, " nowhere")
        await sees(pilot, "No run matches 'state:fa nowhere'.")
        await pilot.press("escape")
        await sees(pilot, "v5-hard", "Runs 5")


async def test_the_line_of_keys_shows_no_letters_while_one_types_and_a_click_is_the_key() -> None:
    async with cockpit(FLEET, size=(80, 24)) as (pilot, _):
        await pilot.click(KeyLine, offset=(screen_lines(pilot.app)[-1].index("/ filter"), 0))
        await sees(pilot, "esc clear filter")
        assert "new" not in screen_lines(pilot.app)[-1]
        await pilot.click(KeyLine, offset=(2, 0))
        await sees(pilot, "n new", "q quit")


async def test_enter_keeps_the_filter_and_the_keys_go_back_to_the_list() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await pilot.press("slash")
        await types(pilot, "host:local")
        await pilot.press("enter")
        await sees(pilot, "host:local", "Runs 1 of 5")
        await pilot.press("enter")
        await sees(pilot, "step 600/600")


async def test_moving_by_arrows_letters_and_ends() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await sees(pilot, "▸")
        places = []
        for key in ("j", "down", "k", "G", "g", "up", "end", "home"):
            await pilot.press(key)
            await pilot.pause()
            places.append(pilot.app.screen.query_one(RunList).selected.run.run_id)
        assert places == ["v4-kl07", "v3", "v4-kl07", "golden", "v5-hard", "v5-hard", "golden", "v5-hard"]


async def test_the_cursor_stays_on_its_run_when_rows_come_and_go() -> None:
    async with cockpit(FLEET) as (pilot, seat):
        await pilot.press("j", "j")
        seat.store.known = [make_run("new-1"), make_run("new-2"), *FLEET]
        seat.advanced(None)
        await sees(pilot, "new-1")
        assert "failed: oom-gpu" in line_of(pilot, "▸")
        seat.store.known = [run for run in seat.store.known if run.run_id != "v3"]
        seat.advanced(None)
        await sees_no(pilot, "v3 ")
        assert "▸" in screen_text(pilot.app)


async def test_names_from_outside_are_drawn_and_never_obeyed() -> None:
    names = ["[red]alarm[/red]", "[/]", "a\x1b[31mb\x07", "学習\u202eabc", "x" * 300, "\n\n"]
    async with cockpit([make_run(f"r{i}", name=name) for i, name in enumerate(names)]) as (pilot, _):
        await sees(pilot, "[red]alarm[/red]", "[/]", "a\\x1b[31mb\\x07", "学習\\u202eabc", "xxx…", "\\n\\n")
        await pilot.press("enter")
        await sees(pilot, "[red]alarm[/red]", "loss")
        await pilot.press("X")
        await sees(pilot, "Stop [red]alarm[/red] on gpu2?")


async def test_a_store_in_trouble_is_said_in_place_and_gone_when_it_is_well_again() -> None:
    async with cockpit(FLEET) as (pilot, seat):
        seat.store.trouble = StoreBusyError("the store is held by process 4121: close it, or wait")
        seat.advanced(None)
        await sees(pilot, "held by process 4121", "v5-hard")
        seat.store.trouble = None
        seat.advanced(None)
        await sees_no(pilot, "held by process 4121")


async def test_the_line_below_says_why_a_host_is_silent() -> None:
    async with cockpit(FLEET) as (pilot, seat):
        seat.silent_hosts["gpu2"] = "unreachable for 41 s, next try in 5 s: Connection refused"
        await pilot.press("j")
        await sees(pilot, "next try in 5 s: Connection refused")


async def test_actions_that_cannot_be_done_are_greyed_out() -> None:
    async with cockpit(FLEET) as (pilot, _):
        can = []
        for _ in FLEET:
            bindings = pilot.app.screen.active_bindings
            can.append((bindings["X"].enabled, bindings["r"].enabled))
            await pilot.press("j")
            await pilot.pause()
        assert can == [(True, False), (True, False), (False, True), (False, False), (False, False)]


async def test_hundreds_of_runs_scroll() -> None:
    async with cockpit([make_run(f"run-{number:03}") for number in range(500)]) as (pilot, _):
        await sees(pilot, "Runs 500", "run-000")
        await pilot.press("G")
        await sees(pilot, "run-499")
        await sees_no(pilot, "run-000")
        await pilot.press("g", "pagedown", "ctrl+d")
        await until(
            pilot, lambda: pilot.app.screen.query_one(RunList).selected.run.run_id == "run-070", "two pages down"
        )
        assert "run-070" in line_of(pilot, "▸")


def names_in_order(pilot: Pilot[None]) -> list[str]:
    return [row.run.name for row in pilot.app.screen.query_one(RunList).rows]


async def test_the_list_is_ordered_by_each_column_in_turn_and_turned_round() -> None:
    runs = [replace(run, step=step) for run, step in zip(FLEET, (300, None, 100, 500, 200), strict=True)]
    async with cockpit(runs) as (pilot, _):
        await sees(pilot, "26,146")
        seen = {}
        for _ in range(9):
            await pilot.press("s")
            await pilot.pause()
            title = screen_lines(pilot.app)[0].rpartition(" · ")[2].split()
            seen[" ".join(title)] = names_in_order(pilot)
        assert list(seen)[:4] == ["by STATE ▼", "by RUN ▲", "by HOST ▲", "by STEP ▼"]
        assert seen["by STEP ▼"] == ["demo", "v5-hard", "golden", "v3", "v4-kl07"]
        assert seen["by RUN ▲"] == ["demo", "golden", "v3", "v4-kl07", "v5-hard"]
        assert seen["by STATE ▼"] == ["v5-hard", "v4-kl07", "v3", "demo", "golden"]
        assert seen["by AGE ▲"][0] == "v5-hard" and seen["by AGE ▲"][-1] == "golden"
        assert names_in_order(pilot) == [run.name for run in FLEET]
        await pilot.press("S")
        await sees(pilot, "the oldest first")
        assert names_in_order(pilot) == [run.name for run in reversed(FLEET)]
        column = screen_lines(pilot.app)[1].index("STEP")
        await pilot.click(RunList, offset=(column, 0))
        await sees(pilot, "STEP▼", "by STEP ▼")
        await pilot.click(RunList, offset=(column, 0))
        await sees(pilot, "STEP▲")
        assert names_in_order(pilot) == ["v3", "golden", "v5-hard", "demo", "v4-kl07"], "what has no step stays last"


async def test_marks_are_letters_in_the_order_of_marking_and_survive_sorting_and_news() -> None:
    async with cockpit(FLEET) as (pilot, seat):
        await pilot.press("j", "space", "k", "space", "j", "j", "space")
        await sees(pilot, "3 marked")
        await pilot.press("s", "s", "S")
        seat.store.known = [make_run("new-1"), *FLEET]
        seat.advanced(None)
        await sees(pilot, "new-1")
        marks = {row.run.name: row.mark for row in pilot.app.screen.query_one(RunList).rows if row.mark}
        assert marks == {"v4-kl07": "a", "v5-hard": "b", "v3": "c"}
        assert line_of(pilot, "v5-hard")[1] == "b"
        await pilot.press("space")
        await sees(pilot, "2 marked")
        seat.store.known = seat.store.known[:2]
        seat.advanced(None)
        await sees(pilot, "1 marked")


async def test_pinned_runs_stay_on_top_also_in_the_next_session() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await sees(pilot, "demo")
        await pilot.press("j", "j", "j", "p", "s", "s", "s", "s")
        await sees(pilot, "★ demo", "by STEP")
        assert names_in_order(pilot)[0] == "demo"
    async with cockpit(FLEET) as (pilot, _):
        await sees(pilot, "★ demo")
        await pilot.press("g", "p")
        await sees_no(pilot, "★")
        assert names_in_order(pilot) == [run.name for run in FLEET]


async def test_forgetting_asks_first_and_says_what_stays() -> None:
    async with cockpit(FLEET) as (pilot, seat):
        await pilot.press("D")
        await sees(pilot, "Forget v5-hard (running), its 23,000 rows", "goes on, on gpu2")
        await pilot.press("escape", "j", "j", "D")
        await sees(pilot, "Forget v3 (failed)", "gpu2 keeps")
        seat.trouble = StoreBusyError("the store is held by process 4121")
        await pilot.press("enter")
        await sees(pilot, "held by process 4121", "Forget v3 (failed)")
        seat.trouble = None
        await pilot.press("enter")
        await sees(pilot, "v3 is forgotten here", "Runs 4")
        assert [said for said in seat.said if said[0] == "forget"] == [("forget", "v3")] * 2


async def test_a_filter_that_cannot_be_read_is_told_and_the_list_stays() -> None:
    async with cockpit(FLEET) as (pilot, _):
        await sees(pilot, "0.913")
        await pilot.press("slash")
        await types(pilot, "v5 loss<x")
        await sees(pilot, "Runs 1 of 5 · loss<x: 'x' is no number here")
        await pilot.press("backspace")
        await types(pilot, "1")
        await sees_no(pilot, "no number")
        assert names_in_order(pilot) == ["v5-hard"]


async def test_only_rows_in_sight_are_drawn_and_a_key_draws_those_it_changes() -> None:
    async with cockpit([make_run(f"run-{number:03}") for number in range(500)], size=(120, 30)) as (pilot, _):
        await sees(pilot, "0.913")
        one = pilot.app.screen.query_one(RunList)
        drawn: list[int] = []
        draw = one.render_line
        one.render_line = lambda y: drawn.append(y) or draw(y)  # type: ignore[method-assign,func-returns-value]
        counts = []
        # News of the list may come between, and draw all of it.
        for _ in range(5):
            drawn.clear()
            await pilot.press("j")
            counts.append(len(drawn))
        assert min(counts) == 2 and max(counts) <= 2 * 30
        drawn.clear()
        await pilot.press("G")
        await sees(pilot, "run-499")
        assert len(set(drawn)) <= 30 and len(drawn) <= 4 * 30

"""The Compare screen: what it says before there is anything to compare, what it compares, by which keys."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.comparison import Comparison, Metric
from dflash_tui.differences import Difference
from dflash_tui.references import Reference
from dflash_tui.runs import Window
from dflash_tui.store.base import ResolvedWindow
from dflash_tui.store.mirror import Mirror
from dflash_tui.ui.compare_list import COLUMNS, CompareList, rows_of
from dflash_tui.ui.run_list import RunList
from dflash_tui.ui.run_names import next_free, told_apart

from .cockpit import cockpit, screen_lines, screen_text, sees, sees_no, types, until
from .scripted_seat import make_more_panels, make_run
from .test_screens_on_a_store import session, story_lines, take_in

RUNS = [make_run("v5-hard"), make_run("v5-g10"), make_run("v4-kl07"), make_run("v3"), make_run("v2")]


async def test_with_fewer_than_two_marked_it_says_what_to_press() -> None:
    async with cockpit(RUNS, size=(80, 24)) as (pilot, _):
        await pilot.press("6")
        await sees(pilot, "No runs are marked.", "space   marks the one under the cursor")
        await pilot.press("tab", "w", "s", "o", "y", "X", "r", "j", "1", "space", "6")
        await sees(pilot, "Only one run is marked.", "R       here: hold this one")
        await pilot.press("R")
        await sees(pilot, "Compare · steps 0..22,698 · a v5-hard", "reference", "of 6.490")
        await pilot.press("R")
        await sees(pilot, "3.63 29 %", "of 12.38")
        await pilot.press("R")
        await sees(pilot, "Only one run is marked.")
        await pilot.press("escape")
        await sees(pilot, "1 marked")


async def test_two_runs_side_by_side_over_one_chart_by_keys() -> None:
    async with cockpit(RUNS) as (pilot, seat):
        seat.store.panels = make_more_panels
        seat.store.configs = {"v5-hard": {"gamma": 7, "loss": "hardCE"}, "v5-g10": {"gamma": 10, "loss": "hardCE"}}
        await pilot.press("j", "space", "k", "space", "6")
        await sees(pilot, "steps 0..22,698 · a v5-g10 · b v5-hard", "gamma", "grad_norm median")
        text = screen_text(pilot.app)
        assert "hardCE" not in text, "only what differs"
        gamma = next(line for line in screen_lines(pilot.app) if "gamma" in line).split()[:5]
        assert gamma == ["gamma", "10", "7", "-3", "-30.0"]
        await sees(pilot, "a ⠒⠒ v5-g10 0.94", "b ⠂⠂ v5-hard 0.94")
        await pilot.press("s")
        await sees(pilot, "a v5-hard · b v5-g10")
        await pilot.press("tab")
        await sees(pilot, "top-8 streak  2 of 5")
        await pilot.press("R", "R")
        await sees(pilot, "╌╌ 12.4, now 29 % (a), 29 % (b) of reference")
        assert pilot.app.screen.query_one(CompareList).selected.a == "story"
        await pilot.press("R")
        await sees_no(pilot, "of reference")
        await pilot.press("w")
        await types(pilot, "3000..5000")
        await pilot.press("enter")
        await sees(pilot, "steps 3,000..5,000")
        assert seat.store.asked[-1][2] == Window.between(3000, 5000)


async def test_two_runs_of_one_name_are_told_apart_by_the_ends_of_their_ids() -> None:
    runs = [make_run("demo-1130-ab3f", name="demo"), make_run("demo-1130-cd7f", name="demo"), make_run("v4")]
    assert told_apart(runs) == ["demo …3f", "demo …7f", "v4"]
    assert told_apart([make_run("x", name="demo"), make_run("ax", name="demo")]) == ["demo x", "demo ax"]
    assert [next_free(name, {"demo", "demo-2", "v-50"}) for name in ("demo", "demo-2", "v-50")] == [
        "demo-3",
        "demo-3",
        "v-50-2",
    ]
    async with cockpit(runs) as (pilot, _):
        # In the list too.
        await sees(pilot, "demo …3f", "demo …7f")
        assert "v4 …" not in screen_text(pilot.app)
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "a demo …3f · b demo …7f")


async def test_figures_that_begin_alike_are_told_apart_and_the_place_of_the_chart_is_never_cut() -> None:
    stats = ["train rows 1", "train rows 12", "train rows 2", "MATH-500", "HumanEval"]
    async with cockpit(RUNS, size=(110, 30)) as (pilot, seat):
        seat.store.quality = [("tau_linear_macro_of_all", None, stat, False, 0.3) for stat in stats]
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "_…rain rows 1 ", "_…ain rows 12 ", "_…rain rows 2 ", "_…ll MATH-500 ", "_…l HumanEval ")
        await pilot.press("G")
        await sees(pilot, " tau_linear_macro_of_all HumanEval ")
        await pilot.press("tab", "tab")
        await sees(pilot, "learning rate  3 of 4, tab ─")


async def test_who_comes_back_sees_how_far_the_runs_are_now_at_the_same_place() -> None:
    async with cockpit(RUNS) as (pilot, seat):
        reach = 70
        seat.store.window = lambda run_id, window: ResolvedWindow(window.kind, reach, 1, reach)
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "steps 1..70", "grad_norm median")
        place = [row.label for row in pilot.app.screen.query_one(CompareList).rows].index("grad_norm median")
        await pilot.press(*["j"] * place, "1")
        await sees(pilot, "2 marked")
        reach = 80
        await pilot.press("6")
        await sees(pilot, "steps 1..80", "▸ grad_norm median")


async def test_the_chart_follows_the_cursor_in_the_list() -> None:
    async with cockpit(RUNS) as (pilot, _):
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "grad_norm median", "loss  1 of 4")
        one = pilot.app.screen.query_one(CompareList)
        await until(pilot, lambda: bool(one.rows), "rows")
        for _ in range([row.label for row in one.rows].index("grad_norm median")):
            await pilot.press("j")
        await sees(pilot, "gradient norm  2 of 4")


async def test_up_to_four_runs_are_overlaid_each_by_its_letter() -> None:
    async with cockpit(RUNS) as (pilot, _):
        for _ in range(5):
            await pilot.press("space", "j")
        await pilot.press("6")
        await sees(pilot, "a v5-hard · b v5-g10 · c v4-kl07 · d v3 · the first 4 of 5 marked", "d ⠂⠂ v3")
        await pilot.press("1")
        await sees(pilot, "5 marked")
        assert "".join(row.mark for row in pilot.app.screen.query_one(RunList).rows) == "abcde"


async def test_runs_that_are_gone_or_wrong_references_are_sentences() -> None:
    folder = paths.config_dir() / "references"
    folder.mkdir(parents=True)
    (folder / "a-broken.json").write_text('{"tua": {}}')
    async with cockpit(RUNS) as (pilot, seat):
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "grad_norm median")
        await pilot.press("R")
        await sees(pilot, "'tua': did you mean 'tau'?")
        seat.store.known = RUNS[1:]
        await pilot.press("s")
        await sees(pilot, "no run v5-hard")


async def test_code_and_config_of_real_runs(tmp_path: Path) -> None:
    logs = {}
    for run, gamma, last in (("one", 7, 300), ("two", 10, 200)):
        logs[run] = tmp_path / f"{run}.jsonl"
        start = {"event": "start", "config": {"gamma": gamma, "lr": 6e-4}}
        logs[run].write_text(json.dumps(start) + "\n" + story_lines(1, last))
    async with session((120, 40)) as pilot:
        for run, log in logs.items():
            await take_in(pilot, run, log)
        record = Mirror("two").read_record()
        assert record is not None
        changed = replace(record, commit="4f2a9c1b77d0", is_dirty=True)
        await pilot.app.seat.ask(lambda store: store.register_run(changed))
        await sees(pilot, "Runs 2")
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "steps 1..200", "git_commit", "4f2a9c1b77", "git_dirty", "true", "gamma", "loss mean")
        await sees(pilot, "⠒⠒ ", "nats")


@pytest.mark.parametrize(
    ("a", "b", "pct"),
    [
        (2, 3, "+50.0"),
        (0.5, 6.5, "x13"),
        (-0.5, 12, ">999"),
        (1e-9, 1e300, ">999"),
        (1, -12, "<-999"),
        (0, 5, ""),
        (5e-324, 1e308, ">999"),
        (3, 10**308, ">999"),
        (10**400, 0.5, ""),
    ],
)
def test_a_change_is_said_in_seven_columns_whatever_a_config_holds(a: float, b: float, pct: str) -> None:
    one, two = make_run("one"), make_run("two")
    rows = rows_of(Comparison(one, two, None, (0, 0), [Difference("lr", a, b)], [], ({}, {})), None)
    assert [row.pct for row in rows if row.label == "lr"] == [pct]


def test_what_neither_run_tells_is_not_called_the_same() -> None:
    one, two = make_run("one"), make_run("two")
    rows = rows_of(Comparison(one, two, None, (0, 0), [], [], ({}, {}), untold=frozenset({"code"})), None)
    assert [(row.label, row.a, row.whole) for row in rows] == [
        ("code", "not known", "neither run tells its code"),
        ("config", "the same", ""),
    ]


def test_no_number_of_the_list_is_cut() -> None:
    numbers = (7.5e299, -7.5e299, 750_000_000_000, 0.12345678901234, 10**400, 1e-300, -0.0001234567890123)
    pairs = [(a, b) for a in numbers for b in numbers]
    rows = rows_of(
        Comparison(
            *(make_run("one"), make_run("two"), (1, 10**15), (10**12, 1)),
            [Difference("lr", a, b) for a, b in pairs],
            [Metric("loss", "mean", a, b) for a, b in pairs if max(abs(a), abs(b)) < 1e308],
            ({("loss", "p90"): 7.5e299}, {("loss", "p90"): -7.5e299}),
        ),
        Reference("far", "far", "", {("loss", "p90"): 1e-300, ("loss", "mean"): 7.5e299}),
    )
    widths = [column.width for column in COLUMNS[1:]]
    assert len(rows) > 80
    for row in rows:
        assert all(len(text) <= width for text, width in zip(row[1:5], widths, strict=True)), row
        assert "…" not in "".join(row[1:5])


def test_a_run_without_steps_is_held_against_a_reference_by_its_evaluations() -> None:
    reference = Reference("mine", "mine", "", {("tau_linear_macro", "GSM8K"): 6.5})
    key = ("tau_linear_macro", "GSM8K")
    found = Comparison(make_run("one"), None, None, (0, 0), [], [], ({key: 3.25}, {}), evaluated=frozenset({key}))
    assert [(row.label, row.a) for row in rows_of(found, reference)][1:] == [("tau_linear_macro GSM8K", "3.25 50 %")]
    assert rows_of(replace(found, figures=({}, {})), reference) == []


@pytest.mark.parametrize("size", [(40, 10), (64, 24), (170, 60)])
async def test_it_fits_any_terminal_that_is_large_enough(size: tuple[int, int]) -> None:
    async with cockpit(RUNS, size=size) as (pilot, _):
        await pilot.press("space", "j", "space", "6")
        await sees(pilot, "code", "config")

"""Answers that are kept: never another than a store that keeps nothing would give, whatever happens to the run."""

import json
import math
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult, ResolvedWindow
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.panel_cache import Answers, Kept, RunState, Whole, read_state
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.panels import run_panels

from .test_panel_answers import ingest, one, write

pytestmark = pytest.mark.slow

EDGES = (1500.0, 3000.0)
# Of each kind of SELECT one; all fourteen take three times as long.
NAMES = ("vitals", "budget", "acceptance", "loss", "batch", "lr")
WINDOWS = st.sampled_from([Window(), Window.last_rows(7), Window.last_rows(40), Window.between(20, 90)])
# What happens to a log between two looks: rows at its end, a resume, a row that comes late, another log in its place.
HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["grows", "grows", "grows", "resumes", "evaluates", "comes late", "is rewritten", "waits"]),
        st.integers(1, 40),
        WINDOWS,
    ),
    min_size=2,
    max_size=5,
)


def row(step: int, dice: random.Random) -> dict[str, Any]:
    found = {
        "step": step,
        "epoch": step / 50,
        "loss": dice.uniform(0, 9),
        "accuracy": dice.random(),
        "lr": 1 / (1 + step),
        "noise_std": 1 / (2 + step),
        "avg_batch_size": dice.uniform(8, 30),
        "avg_seq_len": dice.uniform(1000, 4000),
        "ddtree_streak8": dice.uniform(0, 8),
        "tok_per_sec": dice.gauss(26_000, 9),
        "grad_norm": dice.choice([0.0, dice.lognormvariate(-2, 1)]),
        "padding_eff": dice.random(),
        "time": 1.78e9 + step * 2 + dice.random(),
    }
    if dice.random() < 0.1:
        found[dice.choice(sorted(found.keys() - {"step"}))] = dice.choice([None, math.nan, math.inf])
    return found


class GrowingLog:
    """The lines that a trainer would have written so far, and what it does next."""

    def __init__(self, file: Path, seed: int) -> None:
        self.file = file
        self.dice = random.Random(seed)
        self.step = 0
        file.write_text("")
        self.happens("grows", 30)

    def happens(self, what: str, size: int) -> None:
        rows: list[dict[str, Any]] = []
        if what == "is rewritten":
            self.file.write_text("")
            self.step = 0
        if what == "evaluates":
            rows = [{"event": "eval", "step": self.step, "tau_linear_macro": 2.5, "lookup_tau_macro": 2.0}]
        elif what == "comes late":
            # A counter that began again with a later epoch: no resume, and an old bucket gets a row.
            rows = [row(max(1, self.step - size), self.dice) | {"epoch": 1e6 + self.step}]
        elif what != "waits":
            begin = max(0, self.step - size) if what == "resumes" else self.step
            rows = [row(step, self.dice) for step in range(begin + 1, begin + size + 1)]
            self.step = begin + size
        with self.file.open("a") as out:
            out.writelines(json.dumps(found) + "\n" for found in rows)


def same(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def assert_same(found: list[PanelResult], right: list[PanelResult]) -> None:
    for panel, other in zip(found, right, strict=True):
        assert (panel.name, panel.state, panel.why, panel.headline) == (
            other.name,
            other.state,
            other.why,
            other.headline,
        )
        assert panel.rows == [[same(cell) for cell in row] for row in other.rows], panel.name


def ask_anew(store: Database, run: str, window: Window, buckets: int) -> list[PanelResult]:
    cursor = store._db.cursor()
    with cursor:
        return run_panels(cursor, run, NAMES, window, buckets, EDGES)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happenings=HAPPENINGS, seed=st.integers(0, 10**6), buckets=st.sampled_from([4, 12, 200]))
def test_what_is_kept_is_what_would_be_found(
    store: Database, tmp_path: Path, happenings: list[tuple[str, int, Window]], seed: int, buckets: int
) -> None:
    run = f"run-{len(store.runs())}"
    log = GrowingLog(tmp_path / f"{run}.jsonl", seed)
    store.ingest(run, log.file)
    store.report(run, list(NAMES), Window(), buckets)
    for what, size, window in happenings:
        log.happens(what, size)
        store.ingest(run, log.file)
        for asked in (window, Window()):
            assert_same(store.report(run, list(NAMES), asked, buckets), ask_anew(store, run, asked, buckets))


def test_a_mirror_that_lost_its_end_and_grew_anew_is_read_anew(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, ({"step": step, "loss": 1.0} for step in range(1, 101)))
    assert one(store, "loss", buckets=10).rows[0][2] == 1.0
    [log] = Mirror("run").folder.glob("train_log.jsonl")
    log.write_text("".join(f'{{"step": {step}, "loss": 2.0}}\n' for step in range(1, 51)))
    store.take_in("run")
    with log.open("a") as out:
        out.writelines(f'{{"step": {step}, "loss": 2.0}}\n' for step in range(51, 301))
    store.take_in("run")
    panel = one(store, "loss", buckets=10)
    assert {cell for found in panel.rows for cell in found[1:6]} == {2.0}
    assert store.window("run", Window()) == ResolvedWindow("run", 300, 1, 300)


DICE = "select step // $width * $width as step, random() as y, count(*) as n from steps where run = $run"


def columns(panel: PanelResult, at: int) -> list[Any]:
    assert panel.state == "rows", panel.why
    return [found[at] for found in panel.rows]


@pytest.fixture
def steps(store: Database, tmp_path: Path) -> Iterator[Any]:
    """Makes the run's log so many steps long."""

    def grow(num: int) -> None:
        ingest(store, tmp_path, ({"step": step, "loss": 1.0} for step in range(1, num + 1)))

    return grow


def test_only_what_a_panel_allows_is_kept(store: Database, steps: Any) -> None:
    write("free", "select random() as y")
    write("whole", "-- cache: run\nselect random() as y")
    buckets = f"-- cache: buckets\n{DICE} and step between $first and $last group by 1 order by 1"
    write("cut", buckets)
    steps(94)
    before = {name: columns(one(store, name, buckets=30), -1) for name in ("free", "whole")}
    cut = one(store, "cut", buckets=30)
    assert columns(cut, 0)[:3] == [0, 4, 8] and columns(cut, 0)[-1] == 92
    again = {name: columns(one(store, name, buckets=30), -1) for name in ("free", "whole")}
    assert again["whole"] == before["whole"] and again["free"] != before["free"]
    assert one(store, "cut", buckets=30) == cut

    steps(101)
    later = one(store, "cut", buckets=30)
    assert columns(one(store, "whole", buckets=30), 0) != before["whole"]
    # Bucket 92..95 was open. Those before it are not asked for again.
    assert columns(later, 1)[:23] == columns(cut, 1)[:23]
    assert columns(later, 2) == [3] + [4] * 24 + [2]
    assert columns(later, 1)[23] != columns(cut, 1)[23]

    # A file that was changed is another question.
    write("cut", buckets + " -- changed")
    assert columns(one(store, "cut", buckets=30), 1)[:23] != columns(cut, 1)[:23]


def test_two_windows_do_not_mix(store: Database, steps: Any) -> None:
    steps(100)
    write("mine", f"-- cache: buckets\n{DICE} and step between $first and $last group by 1 order by 1")
    for window in (Window.between(11, 50), Window.between(11, 90), Window(), Window.between(11, 40)):
        panel = one(store, "mine", window=window, buckets=12)
        first, last = window.first or 1, window.last or 100
        assert sum(columns(panel, 2)) == last - first + 1


def test_buckets_around_step_0(store: Database, tmp_path: Path) -> None:
    write("mine", f"-- cache: buckets\n{DICE} and step between $first and $last group by 1 order by 1")
    for last in (-15, -11, 3, 9, 30):
        ingest(store, tmp_path, ({"step": step, "loss": 1.0} for step in range(-30, last + 1)))
        panel = one(store, "mine", buckets=12)
        assert sum(columns(panel, 2)) == last + 31
        assert columns(panel, 0) == sorted(set(columns(panel, 0)))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("-- cache: always\nselect 1", "mine.sql:1: 'always': known: buckets, run"),
        (
            "-- cache: buckets\nselect step from steps where run = $run and step > $recent",
            "mine.sql:2: `cache: buckets` goes without $recent, it moves as a run grows",
        ),
        (
            "-- cache: buckets\nselect count(*) as n from steps where run = $run and step between $first and $last",
            "mine.sql:2: `cache: buckets` needs a column `step` that is in a row's bucket",
        ),
    ],
)
def test_what_cannot_be_kept_says_why(store: Database, steps: Any, sql: str, why: str) -> None:
    steps(5)
    write("mine", sql)
    panel = one(store, "mine")
    assert panel.state == "failed" and panel.why is not None and panel.why.endswith(why)


def test_every_bundled_panel_may_be_kept() -> None:
    bundled = [panel for panel in load_panels() if panel.file.parent == paths.bundled("sql") / "panels"]
    # Samples of GPUs come without new rows.
    assert {panel.name for panel in bundled if panel.cache is None} == {"gpu"}
    assert {panel.name for panel in bundled if panel.cache == "run"} == {
        "acceptance", "bucket_loss", "budget", "dynamics", "grad_hist", "health", "length_buckets", "positions",
        "step_time", "vitals", "windows",
    }  # fmt: skip


def test_what_is_kept_has_its_limits_and_goes_with_its_run() -> None:
    answers = Answers(max_rows=5)
    state = RunState(1, 10, 2, (), None, frozenset())
    result = PanelResult("p", "p", "table", "rows", columns=["a"], rows=[[1], [2]])
    answers.put(Kept(state, result), 0, "a", "q")
    answers.put(Kept(state, result), 0, "b", "q")
    assert answers.get(Kept, "a", "q") is None and answers.get(Kept, "b", "q") is not None
    answers.put(Whole(state, ResolvedWindow("run", 1, 1, 1)), 0, "b")
    assert answers.get(Whole, "b") is not None and answers.get(Kept, "b", "q") is not None
    answers.forget("b")
    assert answers.get(Whole, "b") is None and answers.get(Kept, "b", "q") is None
    # It was seen in a transaction that began before the run was forgotten.
    answers.put(Kept(state, result), 0, "b", "q")
    assert answers.get(Kept, "b", "q") is None


def test_a_run_without_rows_has_a_state_too(store: Database) -> None:
    with store._db.cursor() as cursor:
        assert read_state(cursor, "nobody") == RunState(None, 0, 1, (), None, frozenset())


def test_all_panels_of_a_report_see_the_same_rows(store: Database, steps: Any) -> None:
    for name in "abcdef":
        write(name, "select count(*) as n, max(step) as last from steps where run = $run")
    steps(10)
    is_over = threading.Event()

    def write_on() -> None:
        for num in range(11, 80):
            steps(num)
        is_over.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    seen = set()
    while not is_over.is_set():
        panels = store.report("run", list("abcdef"), Window(), 30)
        [rows] = {tuple(panel.rows[0]) for panel in panels}
        seen.add(rows)
    writer.join()
    assert all(n == last for n, last in seen) and len(seen) > 1

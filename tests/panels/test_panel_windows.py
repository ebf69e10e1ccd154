"""Windows over any log, and buckets: never more than asked for, every extreme kept, gaps where nothing is finite."""

import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult, ResolvedWindow
from dflash_tui.store.database import Database
from dflash_tui.store.guard import LOCKED_DOWN
from dflash_tui.store.panels import run_panels

FINITE = st.floats(-1e6, 1e6)
VALUES = st.none() | FINITE | st.sampled_from([math.nan, math.inf, -math.inf])


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rising steps with holes between them, and one key."""
    steps = sorted(draw(st.sets(st.integers(0, 5_000), min_size=1, max_size=60)))
    return [{"step": step, "loss": draw(VALUES)} for step in steps]


class Runs:
    """One store for all examples of a test: each log becomes a run of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Database(folder / "windows.duckdb")
        self.num_runs = 0

    def add(self, rows: list[dict[str, Any]]) -> str:
        self.num_runs += 1
        run = f"r{self.num_runs}"
        log = self.folder / f"{run}.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.store.ingest(run, log)
        return run

    def ask(self, run: str, name: str, window: Window, buckets: int) -> PanelResult:
        [panel] = self.store.report(run, [name], window, buckets)
        return panel


@pytest.fixture
def runs(home: Path, tmp_path: Path) -> Iterator[Runs]:
    found = Runs(tmp_path)
    yield found
    found.store.close()


many = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@many
@given(rows=logs(), n=st.integers(1, 80), a=st.integers(0, 5_000), b=st.integers(0, 5_000))
def test_windows_lie_over_the_rows_that_are_there(
    runs: Runs, rows: list[dict[str, Any]], n: int, a: int, b: int
) -> None:
    run = runs.add(rows)
    steps = [row["step"] for row in rows]
    assert runs.store.window(run, Window()) == ResolvedWindow("run", len(steps), steps[0], steps[-1])
    newest = steps[-n:]
    assert runs.store.window(run, Window.last_rows(n)) == ResolvedWindow("last", len(newest), newest[0], newest[-1])
    a, b = min(a, b), max(a, b)
    inside = [step for step in steps if a <= step <= b]
    bounds = (inside[0], inside[-1]) if inside else (a, b)
    assert runs.store.window(run, Window.between(a, b)) == ResolvedWindow("range", len(inside), *bounds)


@many
@given(rows=logs(), buckets=st.integers(1, 90))
def test_buckets_keep_the_extremes_and_break_where_nothing_is_finite(
    runs: Runs, rows: list[dict[str, Any]], buckets: int
) -> None:
    panel = runs.ask(runs.add(rows), "loss", Window(), buckets)
    finite = [row["loss"] for row in rows if row["loss"] is not None and math.isfinite(row["loss"])]
    if not finite:
        assert panel.state == "empty"
        return
    at = {name: [row[i] for row in panel.rows] for i, name in enumerate(panel.columns)}
    assert len(panel.rows) <= buckets
    assert at["step"] == sorted(set(at["step"]))
    assert min(v for v in at["min"] if v is not None) == min(finite)
    assert max(v for v in at["max"] if v is not None) == max(finite)
    assert sum(at["n"]) == len(finite)
    # A bucket whose values are all non-finite breaks the line; one of nulls alone is no bucket.
    assert [v is None for v in at["p50"]] == [n == 0 for n in at["n"]]


def test_buckets_stay_where_they_are_while_a_run_grows(runs: Runs) -> None:
    rows = [{"step": step, "loss": 1 / step} for step in range(1, 951)]
    shorter = runs.ask(runs.add(rows[:-55]), "loss", Window(), 100)
    longer = runs.ask(runs.add(rows), "loss", Window(), 100)
    assert shorter.rows[:-1] == longer.rows[: len(shorter.rows) - 1]


def test_few_rows_are_shown_one_by_one(runs: Runs) -> None:
    rows = [{"step": step, "lr": step / 10} for step in range(1, 51)]
    panel = runs.ask(runs.add(rows), "lr", Window(), 50)
    assert [row[:2] for row in panel.rows] == [[step, step / 10] for step in range(1, 51)]


def test_a_line_breaks_at_non_finite_values(runs: Runs, data: Path) -> None:
    values = [1.0, math.nan, 2.0, math.inf, -math.inf, 3.0, 2.0]
    run = runs.add([{"step": step, "accuracy": v} for step, v in enumerate(values, 1)])
    panel = runs.ask(run, "accuracy", Window(), 60)
    right = json.loads((data / "cases" / "case33_nonfinite_axis.expected.json").read_text())
    means = [row[1] for row in panel.rows]
    assert means == [1.0, None, 2.0, None, None, 3.0, 2.0]
    assert (min(v for v in means if v), max(v for v in means if v)) == (right["y_min_data"], right["y_max_data"])
    assert panel.headline == f"mean 2 · last 7 rows · {right['nonfinite_shown']} non-finite"


def test_the_newest_rows_reach_back_into_an_older_generation(runs: Runs) -> None:
    run = runs.add([{"step": step, "loss": 1.0, "colour": "blue" * 9} for step in range(1, 101)])
    (runs.folder / f"{run}.jsonl").write_text("".join(f'{{"step": {step}, "loss": 2.0}}\n' for step in range(101, 111)))
    runs.store.ingest(run, runs.folder / f"{run}.jsonl")
    assert runs.store.query("select max(generation) from records").rows() == [(2,)]
    assert runs.store.window(run, Window.last_rows(5)) == ResolvedWindow("last", 5, 106, 110)
    assert runs.store.window(run, Window.last_rows(30)) == ResolvedWindow("last", 30, 81, 110)
    assert runs.ask(run, "loss", Window.last_rows(20), 60).headline == "p50 1.5 · p10-p90 1-2 · mean 1.5 · last 20 rows"


def test_recent_is_below_the_newest_rows_of_a_window(runs: Runs) -> None:
    file = paths.config_dir() / "panels" / "mine.sql"
    file.parent.mkdir(parents=True)
    file.write_text("select $recent as recent")
    rows = [{"step": step, "epoch": 1} for step in range(1, 8_001)]
    run = runs.add(rows)
    assert runs.ask(run, "mine", Window.between(1, 5_000), 60).rows == [[2_001]]
    assert runs.ask(run, "mine", Window(), 60).rows == [[5_001]]
    assert runs.ask(run, "mine", Window.between(7_000, 7_100), 60).rows == [[7_000]]
    # A counter that begins again with each epoch: among the newest rows is a low step.
    rows[5_000:5_000] = [{"step": 100, "epoch": 2}]
    run = runs.add([row | {"epoch": 2 + nth / 1e4} if nth >= 5_000 else row for nth, row in enumerate(rows)])
    assert runs.ask(run, "mine", Window.between(1, 5_000), 60).rows == [[100]]
    assert runs.ask(run, "mine", Window.between(101, 5_000), 60).rows == [[2_001]]


def test_core_has_the_rows_of_steps(runs: Runs, troubled_log: Path) -> None:
    runs.store.ingest("run", troubled_log)
    columns = ", ".join(f'"{column}"' for column in runs.store.query("select * from core limit 0").columns)
    [(n,)] = runs.store.query("select count(*) from core").rows()
    assert n == 6_000
    assert runs.store.query(f"select {columns} from steps except all select * from core").rows() == []


def test_a_window_narrows_a_chart(runs: Runs) -> None:
    run = runs.add([{"step": step, "lr": float(step)} for step in range(1, 1_001)])
    steps = [row[0] for row in runs.ask(run, "lr", Window.between(101, 200), 100).rows]
    assert (steps[0], steps[-1], len(steps)) == (101, 200, 100)
    steps = [row[0] for row in runs.ask(run, "lr", Window.last_rows(10), 100).rows]
    assert steps == list(range(991, 1_001))


def test_two_stretches_replace_early_and_late(runs: Runs) -> None:
    run = runs.add([{"step": step, "loss": float(step), "ddtree_streak8": float(step)} for step in range(1, 101)])
    assert runs.ask(run, "dynamics", Window(), 60).headline is None
    runs.store.close()
    stretches = (Window.between(11, 20), Window.between(91, 100))
    with duckdb.connect(runs.folder / "windows.duckdb", read_only=True, config=LOCKED_DOWN) as db:
        [panel] = run_panels(db, run, ["dynamics"], Window(), 60, (1500.0, 3000.0), stretches)
    found = {(metric, stat): (value, note) for metric, stat, value, _, note in panel.rows}
    assert found["loss", "early"] == (15.5, "steps 11..20")
    assert found["loss", "late"] == (95.5, "steps 91..100")
    assert panel.headline == "early is steps 11..20 · late is steps 91..100"
    assert found["ddtree_streak8", "change_pct"][0] == pytest.approx(100 * (95.5 / 15.5 - 1))


ENDLESS = "select count(*) as n from range(1000000) a, range(1000000) b where a.range + b.range < 0"


def endless_panels(num: int) -> list[str]:
    folder = paths.config_dir() / "panels"
    folder.mkdir(parents=True)
    for n in range(num):
        (folder / f"endless{n}.sql").write_text(ENDLESS)
    return [f"endless{n}" for n in range(num)]


@pytest.mark.parametrize("num", [1, 3])
def test_an_interrupted_report_is_not_a_failed_panel(runs: Runs, num: int) -> None:
    names = endless_panels(num)
    run = runs.add([{"step": 1}])
    runs.store.close()
    with duckdb.connect(runs.folder / "windows.duckdb", read_only=True, config=LOCKED_DOWN) as db:
        is_over = threading.Event()

        def cancel() -> None:
            # An interrupt that comes before a statement has begun stops none, so it is said again.
            while not is_over.wait(0.3):
                db.interrupt()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(duckdb.InterruptException):
            run_panels(db, run, names, Window(), 60, (1500.0, 3000.0))
        is_over.set()
        canceller.join()
        assert db.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("num", [1, 3])
def test_ctrl_c_ends_a_report_whenever_it_is_pressed(runs: Runs, num: int) -> None:
    names = endless_panels(num)
    run = runs.add([{"step": 1}])
    num_again = 0
    # From before it begins to where its SELECTs run, 5 to 20 ms later: there it met threads that had just been started.
    for delay_s in (*(ms / 1000 for ms in range(20)), 0.3):
        ended = threading.Event()

        def press(delay_s: float = delay_s, ended: threading.Event = ended) -> None:
            nonlocal num_again
            time.sleep(delay_s)
            os.kill(os.getpid(), signal.SIGINT)
            while not ended.wait(30):
                num_again += 1
                os.kill(os.getpid(), signal.SIGINT)

        presser = threading.Thread(target=press)
        with pytest.raises(KeyboardInterrupt):
            try:
                presser.start()
                runs.store.report(run, names, Window(), 60)
            finally:
                ended.set()
                presser.join()
    # Python itself loses one that it would raise while it clears something away.
    assert num_again <= 1
    assert runs.ask(run, "loss", Window(), 60).state == "empty"

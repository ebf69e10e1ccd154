"""What a report gives for each panel: rows, or which kind of nothing, or what is wrong with its file; and JSON."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import GpuSample, RunRecord, Window
from dflash_tui.store.base import PanelResult, StoreOptions
from dflash_tui.store.database import Database

BUNDLED = sorted(file.stem for file in (paths.bundled("sql") / "panels").glob("*.sql"))
# These say in a note of each figure what is missing, so they have rows as soon as the run has one.
LONG_FORM = {"vitals", "dynamics", "budget", "health"}
# Asks for no key: whatever of its figures there is.
ANY_FIGURE = {"windows"}


def ingest(store: Database, tmp_path: Path, rows: Iterable[dict[str, Any]], run: str = "run") -> None:
    log = tmp_path / f"{run}.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store.ingest(run, log)


def write(name: str, text: str) -> Path:
    file = paths.config_dir() / "panels" / f"{name}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def ask(
    store: Database, *names: str, run: str = "run", window: Window | None = None, buckets: int = 60
) -> dict[str, PanelResult]:
    found = store.report(run, list(names) or None, window or Window(), buckets)
    return {panel.name: panel for panel in found}


def one(store: Database, name: str, **how: Any) -> PanelResult:
    return ask(store, name, **how)[name]


def column(panel: PanelResult, name: str) -> list[Any]:
    return [row[panel.columns.index(name)] for row in panel.rows]


@pytest.mark.parametrize("name", BUNDLED)
def test_every_panel_answers_on_a_full_an_empty_and_a_bare_log(
    store: Database, tmp_path: Path, troubled_log: Path, name: str
) -> None:
    store.ingest("full", troubled_log)
    store.gpus({"full": [GpuSample(1.78e9, 0, "H200", 97.0, 30_000.0, 80_000.0)]})
    full = one(store, name, run="full")
    assert (full.state, full.why) == ("rows", None)
    assert full.rows and all(len(row) == len(full.columns) == len(full.units) for row in full.rows)
    assert set(full.axes) <= {"x", "y", "y2", "n", "low", "high", "clip", "x_scale"}

    store.register_run(RunRecord("empty", "empty", "train"))
    empty = one(store, name, run="empty")
    assert (empty.state, empty.why, empty.rows) == ("empty", "nothing has been logged yet", [])

    ingest(store, tmp_path, [{"step": step, "colour": "blue"} for step in range(1, 4)])
    bare = one(store, name)
    if name in LONG_FORM:
        assert bare.state == "rows"
        assert all(row[-1] for row in bare.rows if row[bare.columns.index("value")] is None)
    elif name == "gpu":
        assert bare.why is not None and bare.why.startswith("no GPU was sampled")
    elif name in ANY_FIGURE:
        assert bare.why == "the panel's filter matched 0 of 3 rows (whole run)"
    else:
        assert bare.state == "empty"
        assert bare.why is not None and bare.why.endswith("was never logged; this log has colour, step")


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_panel_passes_the_guard_of_a_persons_own(store: Database, troubled_log: Path, name: str) -> None:
    store.ingest("run", troubled_log)
    ours = one(store, name)
    write(name, (paths.bundled("sql") / "panels" / f"{name}.sql").read_text())
    assert one(store, name) == ours


def test_panels_come_in_their_order_and_by_name(store: Database, troubled_log: Path) -> None:
    store.ingest("run", troubled_log)
    found = list(ask(store))
    assert found[:2] == ["vitals", "dynamics"] and sorted(found) == BUNDLED
    assert list(ask(store, "loss", "vitals")) == ["vitals", "loss"]
    with pytest.raises(UsageError, match="no panel named 'los': did you mean 'loss'"):
        ask(store, "los")


def test_never_logged_names_the_keys_that_are(store: Database, data: Path) -> None:
    store.ingest("run", data / "cases" / "case26_missing_key.jsonl")
    right = json.loads((data / "cases" / "case26_missing_key.expected.json").read_text())["length_panel"]
    panel = one(store, "length_buckets")
    assert panel.state == "empty"
    listed = ", ".join(right["must_list_available"])
    assert panel.why == f"{right['must_name']} was never logged; this log has {listed}"
    assert one(store, "loss").state == "rows"


def test_null_in_this_window_is_not_never_logged(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "loss": 1.0, "lr": 0.1 if s <= 5 else None} for s in range(1, 21)])
    assert one(store, "lr").state == "rows"
    window = Window.between(6, 15)
    assert one(store, "lr", window=window).why == "lr is logged, but null in all 10 rows (steps 6..15)"
    last = one(store, "lr", window=Window.last_rows(3))
    assert last.why == "lr is logged, but null in all 3 rows (last 3 rows)"
    assert one(store, "loss", window=window).state == "rows"


def test_lengths_that_are_null_of_late_empty_the_buckets(store: Database, tmp_path: Path) -> None:
    rows = [{"step": s, "accuracy": 0.1, "avg_seq_len": 9.0 if s == 1 else None} for s in range(1, 9)]
    ingest(store, tmp_path, rows)
    assert one(store, "length_buckets", window=Window.last_rows(4)).why == (
        "avg_seq_len is logged, but null in all 4 rows (last 4 rows)"
    )


@pytest.mark.parametrize("name", BUNDLED)
def test_no_rows_in_this_window_says_which_steps_there_are(store: Database, troubled_log: Path, name: str) -> None:
    store.ingest("run", troubled_log)
    panel = one(store, name, window=Window.between(7_000, 8_000))
    if name in ("acceptance", "positions"):
        assert panel.why == "no evaluations (steps 7,000..8,000)"
    elif name == "gpu":
        assert panel.why is not None and panel.why.startswith("no GPU was sampled")
    else:
        assert panel.why == "no rows in steps 7,000..8,000 of this run: it has steps 1..6,000"


def test_a_window_without_an_end_reads_as_one(store: Database, troubled_log: Path) -> None:
    store.ingest("run", troubled_log)
    panel = one(store, "loss", window=Window.between(7_000, 2**62))
    assert panel.why == "no rows in steps 7,000 and later of this run: it has steps 1..6,000"
    assert one(store, "loss", window=Window.between(5_001, 2**62)).rows[0][0] == 5_001


def test_a_filter_that_matched_nothing_says_of_how_many(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "grad_norm": 0.0} for s in range(1, 9)])
    assert one(store, "grad_norm").why == "the panel's filter matched 0 of 8 rows (whole run)"
    write("mine", "-- requires: grad_norm\nselect step from steps where run = $run and grad_norm > 5")
    assert one(store, "mine").why == "the panel's filter matched 0 of 8 rows (whole run)"


def test_only_non_finite_values_are_counted(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "loss": math.nan} for s in range(1, 4)])
    assert one(store, "loss").why == "loss has only non-finite values: 3 (whole run)"


def test_a_key_that_no_column_holds_can_be_required(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": 1, "my/key": 5}, {"step": 2, "loss": 1.0}])
    sql = "select step, extra ->> 'my/key' as v from steps where run = $run and step >= $first and v is not null"
    write("mine", f"-- requires: my/key\n{sql}")
    assert one(store, "mine").rows == [[1, "5"]]
    assert one(store, "mine", window=Window.between(2, 2)).why == (
        "my/key is logged, but null in all 1 row (steps 2..2)"
    )


def test_rows_without_a_step(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"loss": 1.0}, {"loss": 3.0}])
    assert one(store, "loss").why == "none of the 2 rows (whole run) has a step"
    vitals = {(metric, stat): (value, note) for metric, stat, value, _, note in one(store, "vitals").rows}
    assert vitals["loss", "mean"][0] == 2.0
    assert vitals["step", "last"] == (None, "step was never logged")


def test_an_evaluation_before_the_first_step_is_the_baseline(store: Database, tmp_path: Path) -> None:
    eval_row = {"event": "eval", "step": 0, "tau_linear_macro": 1.1, "lookup_tau_macro": 1.5, "lossless": 1.0}
    ingest(store, tmp_path, [eval_row])
    panel = one(store, "acceptance")
    assert panel.headline == "tau 1.1 · lookup 1.5 · lossless 1"
    assert one(store, "loss").why == "no step has been logged yet"
    later = [{"step": s, "loss": 1.0} for s in range(1, 6)] + [eval_row | {"step": 5, "tau_linear_macro": 3.5}]
    ingest(store, tmp_path, [eval_row, *later], run="later")
    panel = one(store, "acceptance", run="later")
    assert column(panel, "step") == [0, 5]
    assert column(panel, "tau_linear_macro") == [1.1, 3.5]
    assert column(panel, "lookup_tau_macro") == [1.5, 1.5]


def test_the_figures_of_acceptance_are_of_one_evaluation(store: Database, tmp_path: Path) -> None:
    first = {
        "event": "eval",
        "step": 5,
        "name": "GSM8K",
        "tau_linear_macro": 3.0,
        "lookup_tau_macro": 2.5,
        "lossless": 1.0,
    }
    ingest(store, tmp_path, [first, {"event": "eval", "step": 5, "name": "MATH", "tau_linear_macro": 5.0}])
    assert one(store, "acceptance").headline == "tau 5"


def test_before_the_first_step_no_evaluation_is_missing(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"event": "start", "config": {"total_steps": 4}, "gamma": 7.0}])
    assert one(store, "acceptance").why == "no evaluation has been logged yet"


def test_one_step_is_a_window(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": 1, "loss": 2.0}])
    [row] = one(store, "windows").rows
    assert (row[0], row[2], row[-1]) == ("loss", 2.0, 1)


def test_of_how_many_prompts_the_acceptance_is(store: Database, tmp_path: Path) -> None:
    evals = [{"event": "eval", "step": s, "tau_linear_macro": 2.0, "n_samples": n} for s, n in ((0, 64), (5, 16))]
    ingest(store, tmp_path, evals)
    assert one(store, "acceptance").headline == "tau 2 · 16 prompts (16..64 in view)"
    ingest(store, tmp_path, evals[:1], run="one")
    assert one(store, "acceptance", run="one").headline == "tau 2 · 64 prompts"


def test_more_evaluations_than_room_are_joined_with_their_extremes(store: Database, tmp_path: Path) -> None:
    taus = [1 + (7 * s) % 11 for s in range(100)]
    ingest(store, tmp_path, [{"event": "eval", "step": s, "tau_linear_macro": t} for s, t in enumerate(taus)])
    panel = one(store, "acceptance", buckets=8)
    assert len(panel.rows) == 8 and sum(column(panel, "n")) == 100
    assert (min(column(panel, "min")), max(column(panel, "max"))) == (min(taus), max(taus))


def test_first_step_and_evaluation_do_not_bend_throughput(store: Database, data: Path) -> None:
    store.ingest("run", data / "cases" / "case37_warmup_throughput.jsonl")
    # The evaluation's row is no train row: 101 are left of the file's 102.
    assert (
        one(store, "throughput").headline
        == "steady 26,146 · std 4.02 · 100 of the last 101 rows · mean of all 101: 25,895"
    )


def test_a_constant_speed_is_steady(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "tok_per_sec": 50.0} for s in range(1, 9)])
    assert one(store, "throughput").headline == "steady 50 · std 0 · 8 of the last 8 rows · mean of all 8: 50"


def test_headlines_count_non_finite_values(store: Database, tmp_path: Path) -> None:
    keys = ("loss", "accuracy", "grad_norm", "lr", "noise_std", "tok_per_sec", "padding_eff", "ddtree_streak8")
    bad = [math.nan, math.inf, -math.inf]
    rows = [dict.fromkeys(keys, 0.5 + s) | {"step": s} for s in range(1, 5)]
    rows += [dict.fromkeys(keys, v) | {"step": s, "avg_seq_len": v} for s, v in enumerate(bad, 5)]
    ingest(store, tmp_path, rows)
    found = ask(store)
    charts = {
        panel.name: panel for panel in found.values() if panel.name not in LONG_FORM | {"length_buckets", "windows"}
    }
    with_headline = {name: panel.headline for name, panel in charts.items() if panel.state == "rows"}
    assert len(with_headline) == 9
    assert all(headline and headline.endswith("3 non-finite") for headline in with_headline.values()), with_headline
    # A run that went NaN altogether still says so in its headline.
    recent = one(store, "loss", window=Window.between(3, 7))
    assert recent.headline == "p50 4 · p10-p90 3.6-4.4 · mean 4 · last 5 rows · 3 non-finite"


def test_loss_headline_when_the_newest_rows_are_all_nan(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "loss": 1.0 if s < 100 else math.nan} for s in range(1, 2_200)])
    assert one(store, "loss").headline == "last 2,000 rows · 2,100 non-finite"


BROKEN = {
    "select\n  step,\n  lss\nfrom steps where run = $run": "mine.sql:4: there is no column 'lss'",
    "-- title: t\n\nselect step\nform steps": "mine.sql:5: syntax error",
    "select 'head'\n;\n\nselect step,\n nope from steps": "mine.sql:6: there is no column 'nope'",
    "select 1; select 2; select 3": "it may have one SELECT, or two",
    "": "holds no SELECT",
    "connect 'md:'": "mine.sql:2: ",
    "delete from steps": "mine.sql:2: only SELECT is allowed",
    "select 1;\nwith d as (delete from runs returning run) select * from d": "mine.sql:3: only SELECT is allowed",
    "select *\nfrom read_csv('/etc/passwd')": "mine.sql:3: ",
    "select step from steps where step > $frist": "mine.sql:2: unknown parameter $frist: did you mean '$first'?",
    "select 1 as a, 2 as b; select 1": "mine.sql:2: a headline is one cell, its SELECT gives 1 row of 2 columns",
    "select 'many';\nselect * from range(20001)": "mine.sql:3: gives more than 20,000 rows; group by step // $width",
    "select error('went \x1b[2J wrong')": "mine.sql:2: went \\x1b[2J wrong",
    "-- chart: line x=step y=p51\nselect step, loss as p50 from steps": "y=p51 is no column of the SELECT",
    "-- units: step, nats\nselect step from steps": "`units` has 2 entries, the SELECT gives 1 columns: step",
}


@pytest.mark.parametrize("sql", BROKEN)
def test_a_broken_panel_says_file_and_line_and_the_others_go_on(store: Database, tmp_path: Path, sql: str) -> None:
    ingest(store, tmp_path, [{"step": s, "loss": 1.0} for s in range(1, 4)])
    file = write("mine", f"-- order: 2\n{sql}")
    found = ask(store)
    panel = found.pop("mine")
    assert panel.state == "failed" and panel.why is not None
    assert panel.why.startswith(f"{file}:") and BROKEN[sql] in panel.why
    assert panel.why.isprintable()
    assert {panel.state for panel in found.values()} == {"rows", "empty"}
    assert found["loss"].rows


def test_an_unknown_header_key_fails_that_panel_only(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": 1, "loss": 1.0}])
    file = write("mine", "-- What is this?\n--\n-- titel: mine\nselect 1")
    found = ask(store)
    assert found["mine"].why == f"{file}:3: unknown key 'titel': did you mean 'title'?"
    assert found["loss"].state == "rows"


def test_a_persons_panel_replaces_a_bundled_one(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "loss": float(s)} for s in range(1, 4)])
    write(
        "loss",
        "-- Mine.\n--\n-- title: sum\n-- units: nats\nselect 'all';\nselect sum(loss) as s from steps where run = $run",
    )
    panel = one(store, "loss")
    assert (panel.title, panel.help, panel.headline, panel.rows, panel.units) == (
        "sum",
        "Mine.",
        "all",
        [[6.0]],
        ["nats"],
    )


def test_parameters_are_bound_where_they_are_named(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s} for s in range(10, 110)])
    names = "run first last buckets width last_n recent a_first a_last b_first b_last"
    write("mine", f"select {', '.join(f'${name} as {name}' for name in names.split())}, $length_edges as edges")
    panel = one(store, "mine", buckets=20)
    assert dict(zip(panel.columns, panel.rows[0], strict=True)) == {
        "run": "run", "first": 10, "last": 109, "buckets": 20, "width": 5, "last_n": None, "recent": 10,
        "a_first": None, "a_last": None, "b_first": None, "b_last": None, "edges": [1500.0, 3000.0],
    }  # fmt: skip
    panel = one(store, "mine", window=Window.last_rows(4))
    assert panel.rows[0][1:3] == [106, 109] and panel.rows[0][5:7] == [4, 106]


def test_a_panel_of_the_whole_run_has_its_buckets_too(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s} for s in range(1, 1_001)])
    write("mine", "-- window: run\nselect step // $width, count(*) from steps where run = $run group by 1")
    assert len(one(store, "mine", buckets=50).rows) <= 50


@pytest.mark.parametrize(
    ("header", "asked", "first_last"),
    [
        ("run", Window(), [None, None]),
        ("run", Window.last_rows(5), [None, None]),
        ("run", Window.between(20, 30), [20, 30]),
        ("last 7", Window(), [94, 100]),
        ("last 7", Window.last_rows(5), [96, 100]),
        ("last 7", Window.between(20, 30), [20, 30]),
        ("40..50", Window(), [40, 50]),
        ("40..50", Window.last_rows(5), [40, 50]),
        ("40..50", Window.between(20, 30), [20, 30]),
    ],
)
def test_a_panels_own_window(
    store: Database, tmp_path: Path, header: str, asked: Window, first_last: list[int | None]
) -> None:
    ingest(store, tmp_path, [{"step": s} for s in range(1, 101)])
    write("mine", f"-- window: {header}\nselect $first as first, $last as last")
    assert one(store, "mine", window=asked).rows == [first_last]


def test_answers_are_strict_json(store: Database, troubled_log: Path) -> None:
    store.ingest("run", troubled_log)
    write("mine", "select 'NaN'::double as a, -'inf'::double as b, [1, 'inf'::double] as c, 1.5::decimal(4, 1) as d,"
          " date '2026-11-29' as e, 'x'::blob as f, 2::hugeint ** 70 as g")  # fmt: skip
    found = ask(store)
    text = json.dumps([panel.rows for panel in found.values()], allow_nan=False)
    assert "Infinity" in text
    assert found["mine"].rows[0][:6] == ["NaN", "-Infinity", [1.0, "Infinity"], 1.5, "2026-11-29", "x"]


def test_length_edges_come_from_the_config(tmp_path: Path, home: Path) -> None:
    with Database(tmp_path / "edges.duckdb", StoreOptions(length_edges=(10.0, 20.5))) as store:
        ingest(store, tmp_path, [{"step": s, "accuracy": s / 10, "avg_seq_len": s * 5} for s in range(1, 6)])
        panel = one(store, "length_buckets")
        assert column(panel, "tokens") == ["short < 10", "mid 10..20.5", "long > 20.5"]
        assert column(panel, "n") == [1, 3, 1]
        vitals = {(metric, stat): value for metric, stat, value, _, _ in one(store, "vitals").rows}
        assert vitals["accuracy", "mid"] == pytest.approx((0.2 + 0.3 + 0.4) / 3)

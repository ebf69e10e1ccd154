"""Panels of spreads and parts: histogram of norms, slots, length buckets, time of a step, what is no figure."""

import math
from pathlib import Path

import pytest

from dflash_tui.runs import Window
from dflash_tui.store.database import Database

from .test_panel_answers import column, ingest, one


def test_the_histogram_holds_every_norm_once_in_equal_steps_of_its_logarithm(store: Database, tmp_path: Path) -> None:
    norms = [0.001 * 1.3**i for i in range(30)] + [0.0, math.nan]
    ingest(store, tmp_path, [{"step": s, "grad_norm": v} for s, v in enumerate(norms, 1)])
    panel = one(store, "grad_hist")
    low, high, n = (column(panel, name) for name in ("low", "high", "n"))
    assert sum(n) == 30
    assert low[0] == pytest.approx(norms[0]) and high[-1] == pytest.approx(norms[29])
    steps = [math.log(h / b) for b, h in zip(low, high, strict=True)]
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert panel.headline == "1 non-finite"
    ingest(store, tmp_path, [{"step": s, "grad_norm": 0.5} for s in range(1, 9)], run="constant")
    [row] = one(store, "grad_hist", run="constant").rows
    assert row[0] == pytest.approx(0.5) and row[1] > row[0] and row[2] == 8


def test_slots_come_from_the_newest_evaluation_in_view_else_from_training(store: Database, tmp_path: Path) -> None:
    rows = [
        {"step": 1, "loss": 1.0, "position_acc": [0.1, 0.05]},
        {"event": "eval", "step": 2, "position_acc": [0.9, 0.5, None]},
        {"step": 3, "loss": 1.0, "position_acc": [0.2, 0.1]},
        {"event": "eval", "step": 3, "tau_linear_macro": 2.0},
    ]
    ingest(store, tmp_path, rows)
    panel = one(store, "positions")
    assert panel.rows == [["1", 0.9], ["2", 0.5], ["3", None]]
    assert (panel.headline or "").startswith("evaluation at step 2 · slot 1 0.9")
    assert one(store, "positions", window=Window.between(3, 3)).rows == [["1", 0.2], ["2", 0.1]]


def test_accuracy_by_slot_is_of_no_evaluation_that_a_resume_voided(store: Database, tmp_path: Path) -> None:
    steps = [{"step": s, "loss": 1.0, "position_acc": [s / 10]} for s in range(1, 9)]
    gone = {"event": "eval", "step": 8, "position_acc": [0.99]}
    kept = {"event": "eval", "step": 4, "position_acc": [0.5]}
    ingest(store, tmp_path, [*steps[:4], kept, *steps[4:], gone, *steps[4:8]])
    assert one(store, "positions").rows == [["1", 0.5]]
    ingest(store, tmp_path, [*steps, gone, *({"step": s, "loss": 1.0} for s in range(5, 9))], run="bare")
    assert one(store, "positions", run="bare").rows == [["1", 0.4]], "the train row before the resume"


def test_accuracy_by_slot_outside_of_training(store: Database, tmp_path: Path) -> None:
    """Evaluations before the first step, behind the last one, or without any; of other processes; no numbers."""
    steps = [{"step": s, "loss": 1.0} for s in range(1, 9)]
    held_out = {"event": "eval", "step": 5, "position_acc": [0.5, "NaN"]}
    for name, rows in {
        "alone": [held_out],
        "before": [held_out | {"step": 0}, *steps],
        "behind": [held_out | {"step": 3, "position_acc": [0.1]}, *steps, held_out | {"step": 9}],
        "ranks": [held_out, held_out | {"rank": 1, "position_acc": [0.1]}, *steps],
        "spoiled": [held_out, held_out | {"step": 6, "position_acc": ["NaN", "Infinity"]}, *steps],
    }.items():
        ingest(store, tmp_path, rows, run=name)
        panel = one(store, "positions", run=name)
        assert panel.rows == [["1", 0.5], ["2", None]], name
        assert (panel.headline or "").endswith("slot 1 0.5 · 1 non-finite"), name


def test_rows_of_other_processes_are_in_no_bar(store: Database, tmp_path: Path) -> None:
    one_of = {"step_time_s": 1.0, "bucket_loss": {"512": 1.0}}
    other = {"rank": 1, "step_time_s": 9.0, "bucket_loss": {"512": 9.0}}
    ingest(store, tmp_path, [row | {"step": s} for s in range(1, 6) for row in (one_of, other)])
    assert one(store, "bucket_loss").rows == [["512", 1.0, 5]]
    assert one(store, "step_time").headline == "1 s a step over the last 5 rows that say so"


def test_times_of_a_step_that_are_no_numbers_are_no_bar(store: Database, tmp_path: Path) -> None:
    ingest(store, tmp_path, [{"step": s, "step_time_s": math.nan} for s in range(1, 4)])
    panel = one(store, "step_time")
    assert (panel.state, panel.why) == ("empty", "step_time_s has only non-finite values: 3 (whole run)")


def test_length_buckets_are_in_their_order_whatever_they_are_called(store: Database, tmp_path: Path) -> None:
    losses: list[dict[str, object]] = [
        {"512": 1.0, "1024": 2.0, 'odd "name"': 3.0}, {"512": 2.0, "1024": None}, {"512": "NaN", "2048": 4.0}
    ]  # fmt: skip
    ingest(store, tmp_path, [{"step": s, "bucket_loss": b} for s, b in enumerate(losses, 1)])
    found = {row[0]: row[1:] for row in one(store, "bucket_loss").rows}
    assert list(found)[:3] == ["512", "1024", "2048"]
    assert found["512"] == [1.5, 2] and found["1024"] == [2.0, 1]


def test_parts_of_a_step_add_up_to_it(store: Database, tmp_path: Path) -> None:
    parts = {"step_time_s": 2.0, "data_wait_s": 0.25, "target_fwd_s": 0.5, "bwd_s": 0.75}
    ingest(store, tmp_path, [{"step": s, "loss": 1.0, **parts} for s in range(1, 5)])
    panel = one(store, "step_time")
    assert panel.rows == [["data", 0.25, 4], ["target", 0.5, 4], ["backward", 0.75, 4], ["other", 0.5, 4]]
    assert panel.headline == "2 s a step over the last 4 rows that say so"


def test_what_is_no_figure_is_counted(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    lines = [f'{{"step": {s}, "loss": {s}.0}}' for s in range(1, 6)]
    lines += ["no record", '{"loss": NaN}', '{"event": "start", "resumed_from_step": 3}', '{"step": 4, "loss": 1.0}']
    log.write_text("\n".join(lines) + "\n")
    store.ingest("run", log)
    found = {figure: value for figure, value, _ in one(store, "health").rows}
    assert found["rows"] == 5 and found["rejected"] == 1 and found["voided"] == 2
    assert found["without_step"] == 1 and found["nonfinite.loss"] == 1 and found["nonfinite.grad_norm"] == 0
    notes = {figure: note for figure, _, note in one(store, "health").rows}
    assert notes["rejected"].startswith("the last at line 6: ")

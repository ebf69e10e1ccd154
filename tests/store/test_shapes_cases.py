"""The public failure cases of logs that are no plain JSON lines, with their right values."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.store.database import Database
from dflash_tui.store.mirror import Mirror

from .conftest import Rows, expected

Ask = Callable[..., Rows]
pytestmark = pytest.mark.usefixtures("few_lines")


def check_figures(ask: Ask, column: str, right: dict[str, Any]) -> None:
    """All that an expected file says of a column, over `steps`."""
    [counts] = ask(
        f"select count(*) filter (isfinite({column})), count(*) filter (isnan({column})),"
        f" count(*) filter ({column} = 'inf'), count(*) filter ({column} = '-inf') from steps"
    )
    assert counts == tuple(right[key] for key in ("n_finite", "n_nan", "n_posinf", "n_neginf"))
    [found] = ask(
        f"select avg({column}), median({column}), quantile_cont({column}, 0.1), quantile_cont({column}, 0.9),"
        f" quantile_cont({column}, 0.95), min({column}), max({column}), stddev_samp({column}), stddev_pop({column})"
        f" from steps where isfinite({column})"
    )
    names = ("mean", "median", "p10", "p90", "p95", "min", "max", "std_sample", "std_pop")
    assert found == pytest.approx(tuple(right[name] for name in names), rel=1e-9)


def test_case03_trainer_state_is_unrolled(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case03_trainer_state")
    summary = database.ingest("a", cases / "case03_trainer_state.json")
    assert (summary.rejects, summary.last_step) == (0, right["last_step"])
    kinds = dict(ask("select event, count(*) from records group by 1"))
    assert kinds == {"train": right["train_rows"], "eval": right["eval_rows"], "summary": right["summary_rows"]}
    assert [step for (step,) in ask("select step from steps order by step")] == right["train_steps"]
    check_figures(ask, "loss", right["loss"])
    assert {str(step): loss for step, loss in ask("select step, eval_loss from evals")} == right["eval_loss"]
    assert ask("select count(lr), min(lr), max(lr) from steps") == [(5, 1e-05, 1.8e-05)]
    [(loss, mean, flos)] = ask(
        "select loss, (extra->>'train_loss')::double, (extra->>'total_flos')::double from records"
        " where event = 'summary'"
    )
    assert (loss, mean, flos) == (None, 1.6, 1.5e19)
    assert database.ingest("a", cases / "case03_trainer_state.json").rows == 0


def test_a_trainer_state_that_grew_brings_its_new_rows(database: Database, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "trainer_state.json"
    rows = [{"step": step, "loss": step / 2, "learning_rate": 1e-5} for step in range(1, 5)]
    file.write_text(json.dumps({"global_step": 2, "log_history": rows[:2]}, indent=2))
    assert database.ingest("a", file).rows == 2
    file.write_text(json.dumps({"global_step": 4, "log_history": rows, "total_flos": 12345678901234567890}))
    summary = database.ingest("a", file)
    assert (summary.rows, summary.attempts) == (2, 1)
    assert ask("select step, loss, lr from steps order by step") == [(n, n / 2, 1e-5) for n in range(1, 5)]


def test_case11_dicts_behind_progress_bars(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case11_tqdm_cr")
    summary = database.ingest("a", cases / "case11_tqdm_cr.log")
    assert (summary.rejects, summary.warnings) == (0, [])
    assert ask("select event, count(*) from records group by 1 order by 1") == [
        ("eval", right["eval_dicts"]),
        ("train", right["train_dicts"]),
    ]
    train = ask("select loss, lr, step from steps order by line_no, step")
    assert [row[0] for row in train] == right["loss"]
    assert [row[1] for row in train] == right["lr"]
    # The bar's n where there is one, else nothing.
    assert [row[2] for row in train] == [10, 20, None]
    check_figures(ask, "grad_norm", right["grad_norm"])
    assert ask("select eval_loss, seconds, epoch from evals") == [(right["eval_loss"], 15.4, 1.0)]


def test_case12_coloured_lines_of_ranks(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case12_titan_ansi")
    summary = database.ingest("a", cases / "case12_titan_ansi.log")
    assert (summary.rows, summary.rejects) == (right["train_rows"] + right["val_rows"], 0)
    train = ask("select step, loss, grad_norm, tok_per_sec, mem_peak_gb, rank from steps order by step")
    for at, name in enumerate(("steps", "loss", "grad_norm", "tok_per_sec")):
        assert [row[at] for row in train] == right[name]
    assert {row[4:] for row in train} == {(right["memory_gib"], 0)}
    assert ask("select avg(tok_per_sec) from steps") == [(right["tps_mean"],)]
    val = right["val"]
    assert ask("select step, loss, eval_loss, tok_per_sec from evals") == [
        (val["step"], val["loss"], val["loss"], val["tps"])
    ]


def test_case14_nested_figures_and_two_learning_rates(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case14_nested_lr_dict")
    summary = database.ingest("a", cases / "case14_nested_lr_dict.jsonl")
    assert (summary.rows, summary.rejects, summary.warnings) == (right["rows"], 0, [])
    kinds = dict(ask("select event, count(*) from records group by 1"))
    assert kinds == {"train": right["train_rows"], "eval": right["val_rows"]}
    assert [step for (step,) in ask("select step from steps order by step")] == right["steps"]
    check_figures(ask, "loss", right["loss"])
    series = right["lr_series"]
    # `lr` is the AdamW group's where there are two.
    assert [list(row) for row in ask("select step, lr from steps order by step")] == series["lr"] + series["lr/AdamW"]
    muon = ask("select step, lr_muon from steps where lr_muon is not null order by step")
    assert [list(row) for row in muon] == series["lr/Muon"]
    assert ask(
        "select accuracy, accept_len, position_acc, extra->>'train/position_1_acc' from steps where step = 5"
    ) == [(0.15, 1.2, [0.41], "0.41")]
    assert ask("select eval_loss, accuracy, loss from evals") == [(2.55, 0.17, None)]


def test_case17_rotated_and_truncated_files_come_once_each(
    database: Database, ask: Ask, cases: Path, tmp_path: Path
) -> None:
    right = expected(cases, "case17_rotate")
    packed, live = cases / "case17_rotate.jsonl.1.gz", tmp_path / "case17_rotate.jsonl"
    assert database.ingest("a", packed).rows == 50
    shutil.copy(cases / "case17_rotate_phase1.jsonl", live)
    assert database.ingest("a", live).rows == 50
    # Another part of the log is no resume; what stands in the file's place later begins anew.
    assert database.detail("a").attempts[-1].attempt == 1
    with live.open("r+b") as file:
        file.truncate(0)
        file.write((cases / "case17_rotate_phase2.jsonl").read_bytes())
    summary = database.ingest("a", live)
    assert (summary.rows, summary.attempts, Mirror("a").generation("train_log.jsonl")) == (10, 2, 2)
    for known in (packed, cases / "case17_rotate_phase1.jsonl", live, cases / "case17_rotate_phase2.jsonl"):
        assert database.ingest("a", known).rows == 0
    [found] = ask("select count(*), count(*) - count(distinct step), min(step), max(step) from steps")
    assert found == tuple(right[name] for name in ("rows_after", "duplicates", "steps_min", "steps_max"))
    assert ask("select count(*) from records") == [(right["rows_after"],)]
    check_figures(ask, "loss", right["loss"])

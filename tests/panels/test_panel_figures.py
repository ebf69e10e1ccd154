"""Every figure of `vitals` and `dynamics` against the same figure in plain Python, through the real ingest."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult
from dflash_tui.store.database import Database

from . import plain_figures as plain

VITALS = 20
DYNAMICS = 29


def report(store: Database, log: Path, window: Window | None = None) -> dict[str, PanelResult]:
    store.ingest("golden", log)
    return {panel.name: panel for panel in store.report("golden", None, window or Window(), 120)}


def figures(panel: PanelResult) -> dict[str, float | None]:
    assert panel.state == "rows", panel.why
    assert panel.columns == ["metric", "stat", "value", "n", "note"]
    return {".".join(filter(None, (metric, stat))): value for metric, stat, value, _, _ in panel.rows}


def notes(panel: PanelResult) -> dict[str, str]:
    return {".".join(filter(None, (metric, stat))): note for metric, stat, _, _, note in panel.rows}


def counts(panel: PanelResult) -> dict[str, int]:
    return {".".join(filter(None, (metric, stat))): n for metric, stat, _, n, _ in panel.rows}


def same(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-300)


def assert_equal(found: dict[str, PanelResult], log: Path, last_n: int | None = None) -> None:
    rows, total = plain.read_log(log)
    vitals, dynamics = figures(found["vitals"]), figures(found["dynamics"])
    assert vitals == same(plain.vitals(rows, last_n or 2000))
    assert dynamics == same(plain.dynamics(rows, total, last_n or 3000))
    assert (len(vitals), len(dynamics)) == (VITALS, DYNAMICS)
    for name in ("vitals", "dynamics"):
        explained = notes(found[name])
        assert all(explained[figure] for figure, value in figures(found[name]).items() if value is None)


@pytest.fixture
def case(data: Path, tmp_path: Path) -> Any:
    """A public case's log as a file, by the start of its name; gzipped and cut ones are made whole."""

    def unpack(number: int) -> Path:
        parts = sorted(
            file for file in (data / "cases").glob(f"case{number:02d}_*") if ".expected" not in file.suffixes
        )
        log = tmp_path / f"case{number:02d}.jsonl"
        log.write_bytes(
            b"".join(gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in parts)
        )
        return log

    return unpack


def expected(data: Path, number: int) -> Any:
    [file] = (data / "cases").glob(f"case{number:02d}_*.expected.json")
    return json.loads(file.read_text())


def test_the_story_of_23000_steps(store: Database, story_log: Path) -> None:
    found = report(store, story_log)
    assert_equal(found, story_log)
    # Nothing of this log is missing, so nothing is empty.
    assert None not in figures(found["vitals"]).values()
    assert None not in figures(found["dynamics"]).values()
    assert notes(found["dynamics"])["loss.early"] == "steps 3,000..5,000"
    assert notes(found["dynamics"])["lr.at_2800"] == "logged at step 2,800"
    assert notes(found["vitals"])["tok_per_sec.std"].startswith("sample std (n - 1)")


def test_a_resumed_run_with_tokens_nulls_and_non_finite_values(store: Database, troubled_log: Path) -> None:
    found = report(store, troubled_log)
    assert_equal(found, troubled_log)
    early = notes(found["dynamics"])["loss.early"]
    assert "the first fifth of the rows (the run is shorter than 20,000 steps)" in early
    assert "non-finite left out" in early
    assert "not reached yet: the last step is 6,000" in notes(found["dynamics"])["lr.at_10000"]
    assert notes(found["dynamics"])["tokens.per_step"].startswith("of tokens;")


@pytest.mark.parametrize("number", [1, 6, 7, 26, 27, 35, 37])
def test_public_cases(store: Database, case: Any, number: int) -> None:
    log = case(number)
    assert_equal(report(store, log), log)


@pytest.mark.parametrize("last_n", [1, 7, 500, 2000, 100_000])
def test_last_n_replaces_n_and_leaves_whole_run_figures_whole(store: Database, case: Any, last_n: int) -> None:
    log = case(35)
    assert_equal(report(store, log, Window.last_rows(last_n)), log, last_n)


def test_from_and_to_restrict_every_figure(store: Database, story_log: Path) -> None:
    found = report(store, story_log, Window.between(2_900, 21_000))
    rows, total = plain.read_log(story_log)
    rows = [row for row in rows if 2_900 <= row["step"] <= 21_000]
    assert figures(found["vitals"]) == same(plain.vitals(rows))
    assert figures(found["dynamics"]) == same(plain.dynamics(rows, total))
    explained = notes(found["dynamics"])
    assert explained["lr.at_2800"] == "the first step is 2,900"
    short = notes(report(store, story_log, Window.between(0, 10_000))["dynamics"])["loss.early"]
    assert short == "the first fifth of the rows (the window ends before step 20,000)"
    assert explained["lr.at_22000"] == "not in this window: the last step is 21,000"


def test_non_finite_values_are_left_out_and_counted(store: Database, case: Any, data: Path) -> None:
    vitals = report(store, case(1))["vitals"]
    right = expected(data, 1)
    assert figures(vitals)["loss.mean"] == same(right["loss"]["mean"])
    assert figures(vitals)["loss.p90"] == same(right["loss"]["p90"])
    assert figures(vitals)["grad_norm.p95"] == same(right["grad_norm_gt0"]["p95"])
    assert notes(vitals)["loss.mean"] == "10 of the last 12 rows; 2 non-finite left out"
    assert notes(vitals)["grad_norm.max"] == "grad_norm > 0; 9 of all 12 rows; 3 non-finite left out"
    assert counts(vitals)["grad_norm.max"] == right["grad_norm_gt0"]["n_finite"]


def test_the_diagnostic_of_the_story(store: Database, case: Any, data: Path) -> None:
    vitals = report(store, case(35), Window.last_rows(2000))["vitals"]
    right, found = expected(data, 35), figures(vitals)
    assert found["step.last"] == right["last_step"]
    for stat in ("mean", "median", "p95", "max"):
        assert found[f"grad_norm.{stat}"] == same(right["grad_norm_gt0"][stat])
    for stat in ("mean", "median", "p10", "p90"):
        assert found[f"loss.{stat}"] == same(right["loss_last_2000"][stat])
    for name, values in right["buckets_last_2000"].items():
        assert found[f"accuracy.{name}"] == same(values["accuracy_mean"])
        assert found[f"ddtree_streak8.{name}"] == same(values["ddtree_streak8_mean"])
        assert counts(vitals)[f"accuracy.{name}"] == values["n"]
    assert found["tok_per_sec.std"] == same(right["tok_per_sec"]["std_sample"])
    assert (found["noise_std.first"], found["noise_std.last"]) == (right["noise_first"], right["noise_last"])
    assert found["padding_eff.mean"] == same(right["padding_eff_mean_last_2000"])


def test_edges_of_the_length_buckets_belong_to_mid(store: Database, case: Any, data: Path) -> None:
    found = report(store, case(27))
    right = expected(data, 27)
    for at, name in enumerate(("short", "mid", "long")):
        assert figures(found["vitals"])[f"ddtree_streak8.{name}"] == same(right[name]["ddtree_streak8_mean"])
        assert counts(found["vitals"])[f"accuracy.{name}"] == right[name]["n"]
        row = found["length_buckets"].rows[at]
        assert row[0].startswith(name)
        assert row[1:4] == same([right[name]["accuracy_mean"], right[name]["ddtree_streak8_mean"], right[name]["n"]])
    assert notes(found["vitals"])["accuracy.short"] == "avg_seq_len < 1500; 3 of the last 11 rows"


def test_a_missing_key_is_named_and_the_other_figures_stand(store: Database, case: Any, data: Path) -> None:
    found = report(store, case(26))
    vitals = found["vitals"]
    assert figures(vitals)["loss.mean"] == same(expected(data, 26)["loss_panel_still_works"]["mean"])
    assert notes(vitals)["accuracy.short"] == "avg_seq_len was never logged"
    assert notes(vitals)["ddtree_streak8.long"] == "ddtree_streak8 and avg_seq_len were never logged"
    for key in expected(data, 26)["other_missing"]:
        explained = [note for name in ("vitals", "dynamics") for note in notes(found[name]).values() if note]
        assert any(key in note and "never logged" in note for note in explained)


def test_a_bucket_that_no_row_falls_into_says_so(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "short.jsonl"
    log.write_text("".join(json.dumps({"step": s, "accuracy": 0.1, "avg_seq_len": 100}) + "\n" for s in range(1, 6)))
    found = report(store, log)
    assert notes(found["vitals"])["accuracy.long"] == "avg_seq_len > 3000: 0 of the last 5 rows"
    assert found["length_buckets"].rows[2] == ["long > 3000", None, None, 0, "0 of 5 rows"]


def test_one_row_has_no_std_and_no_speed(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "one.jsonl"
    log.write_text('{"step": 1, "tok_per_sec": 5.0, "time": 10.0, "tokens": 7}\n')
    found = report(store, log)
    assert notes(found["vitals"])["tok_per_sec.std"] == "one value has no std"
    assert notes(found["dynamics"])["steps.per_sec"] == "a row with time has no neighbour"
    assert figures(found["dynamics"])["tokens.total"] == 7


def test_without_time_speed_comes_from_tokens(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "untimed.jsonl"
    lines = [{"event": "start", "config": {"total_steps": 40}}]
    lines += [{"step": s, "tok_per_sec": 100.0 + s, "tokens": 10 * s} for s in range(1, 11)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = report(store, log)
    assert figures(found["dynamics"])["steps.per_sec"] == same(105.5 / 55)
    assert figures(found["dynamics"])["eta_s"] == same(30 / (105.5 / 55))
    assert {row[0]: row[1] for row in found["budget"].rows} == same(
        {
            "step": 10,
            "total_steps": 40,
            "epoch": None,
            "epochs_planned": None,
            "tokens_per_step": 55,
            "tokens_total": 550,
            "tokens_planned": 2200,
            "steps_per_sec": 105.5 / 55,
            "eta_s": 30 / (105.5 / 55),
        }
    )


@pytest.mark.parametrize("resumed", [False, True])
def test_tokens_of_rows_of_several_steps_are_told_by_the_step(store: Database, tmp_path: Path, resumed: bool) -> None:
    """A row every 10 steps holds the tokens of 10 steps, as our trainer writes them with log_every = 10."""
    log = tmp_path / "sparse.jsonl"
    lines: list[dict[str, object]] = [{"event": "start", "config": {"total_steps": 400, "log_every": 10}}]
    lines += [{"step": s, "time": 2.0 * s, "tokens": 10 * (100 + s)} for s in range(10, 201, 10)]
    if resumed:
        lines += [{"event": "start", "resumed_from_step": 150}]
        lines += [{"step": s, "time": 900 + 2.0 * s, "tokens": 10 * (100 + s)} for s in range(160, 201, 10)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = report(store, log)
    total = sum(10 * (100 + s) for s in range(10, 201, 10))
    dynamics, budget = figures(found["dynamics"]), {row[0]: row[1] for row in found["budget"].rows}
    for told in (dynamics["tokens.per_step"], budget["tokens_per_step"]):
        assert told == same(total / 200)
    assert dynamics["tokens.total"] == budget["tokens_total"] == same(total)
    assert dynamics["steps.per_sec"] == budget["steps_per_sec"] == same(0.5)
    assert notes(found["dynamics"])["tokens.per_step"].startswith("of tokens, a row being 10 steps; all 20 rows")


@pytest.mark.parametrize(
    ("steps", "row", "per_step", "total"),
    [
        # A gap makes no row longer.
        ([*range(1, 11), *range(40, 51)], {"tokens": 1000}, 1000, 21_000),
        # The last row of a run is made of what was left.
        ([10, 20, 30, 35], {"tokens": 1000}, 4000 / 35, 4000),
        # Without tokens a row stands for the batches of all its steps.
        ([10, 20, 30, 40, 50], {"avg_batch_size": 2, "avg_seq_len": 50}, 100, 5000),
    ],
)
def test_tokens_a_step_whatever_a_row_is_made_of(
    store: Database, tmp_path: Path, steps: list[int], row: dict[str, float], per_step: float, total: float
) -> None:
    log = tmp_path / "rows.jsonl"
    log.write_text("".join(json.dumps({"step": s, **row}) + "\n" for s in steps))
    found = report(store, log)
    dynamics, budget = figures(found["dynamics"]), {row[0]: row[1] for row in found["budget"].rows}
    assert dynamics["tokens.per_step"] == budget["tokens_per_step"] == same(per_step)
    assert dynamics["tokens.total"] == budget["tokens_total"] == same(total)


def test_rows_without_tokens_do_not_thin_the_others(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "rows.jsonl"
    tokens = [1000, "NaN", 1000, None, 1000]
    log.write_text("".join(json.dumps({"step": 10 * s, "tokens": n}) + "\n" for s, n in enumerate(tokens, 1)))
    found = report(store, log)
    assert figures(found["dynamics"])["tokens.per_step"] == same(100)
    assert {row[0]: row[1] for row in found["budget"].rows}["tokens_per_step"] == same(100)


def test_one_row_is_called_one(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "one.jsonl"
    row = dict.fromkeys(("loss", "accuracy", "grad_norm", "tok_per_sec", "padding_eff", "avg_seq_len", "tokens"), 1.0)
    log.write_text(json.dumps({"step": 1, **row, "ddtree_streak8": 1.0, "step_time_s": 1.0, "accept_len": 1.0}) + "\n")
    for panel in report(store, log).values():
        told = [panel.headline, panel.why, *(row[-1] for row in panel.rows)]
        assert not [text for text in told if isinstance(text, str) and " 1 rows" in f" {text}"], (panel.name, told)
    vitals = notes(report(store, log)["vitals"])
    assert vitals["loss.mean"] == "the last 1 row" and vitals["grad_norm.max"] == "grad_norm > 0; all 1 row"


def test_speed_is_that_of_the_steps_of_an_attempt_that_began_in_an_older_log(store: Database, tmp_path: Path) -> None:
    """The first log ends before a step: its lines have the attempt and the numbers of those of the second."""
    log = tmp_path / "log.jsonl"
    others = [{"event": "checkpoint", "step": 0, "time": 7.0 * n, "path": "x" * 90} for n in range(1, 5)]
    log.write_text("".join(json.dumps(line) + "\n" for line in [*others, {"loss": 2.0, "time": 90.0}]))
    store.ingest("golden", log)
    log.write_text("".join(f'{{"step": {s}, "time": {100 + 2 * s}, "tokens": 5}}\n' for s in range(1, 6)))
    found = report(store, log)
    assert store.query("select max(generation), count(distinct attempt) from records").rows() == [(2, 1)]
    assert figures(found["dynamics"])["steps.per_sec"] == 0.5
    assert {row[0]: row[1] for row in found["budget"].rows}["steps_per_sec"] == 0.5


def test_without_time_speed_of_rows_of_several_steps_is_in_steps(store: Database, tmp_path: Path) -> None:
    log = tmp_path / "untimed.jsonl"
    lines = [{"step": s, "tok_per_sec": 50.0, "tokens": 500} for s in range(5, 51, 5)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = report(store, log)
    assert figures(found["dynamics"])["steps.per_sec"] == same(0.5)
    assert {row[0]: row[1] for row in found["budget"].rows}["steps_per_sec"] == same(0.5)


def test_budget_agrees_with_dynamics(store: Database, story_log: Path) -> None:
    found = report(store, story_log)
    dynamics = figures(found["dynamics"])
    budget = {row[0]: row[1] for row in found["budget"].rows}
    assert budget["tokens_per_step"] == same(dynamics["tokens.per_step"])
    assert budget["tokens_total"] == same(dynamics["tokens.total"])
    assert budget["steps_per_sec"] == same(dynamics["steps.per_sec"])
    assert budget["eta_s"] == same(dynamics["eta_s"])
    assert budget["epoch"] == same(6 * 23_000 / 73_290)
    assert budget["epochs_planned"] == same(6)
    assert budget["tokens_planned"] == same(73_290 * budget["tokens_per_step"])
    assert notes(found["dynamics"])["tokens.per_step"].startswith("of avg_batch_size x avg_seq_len; all 23,000 rows")
    note = next(row[3] for row in found["budget"].rows if row[0] == "tokens_planned")
    assert note == "tokens_per_step x total_steps; 31.4 % are done"

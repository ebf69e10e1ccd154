"""Public cases as a person meets them: a log is ingested, and `report` says what it should, in words and as a page."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.output.html import report_page
from dflash_tui.output.report import write_report
from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult
from dflash_tui.store.database import Database

from .test_panel_answers import ask, ingest
from .test_panel_figures import counts, figures, notes

same = pytest.approx


def load(data: Path, name: str) -> Any:
    return json.loads((data / "cases" / name).read_text())


def words(store: Database) -> str:
    """What `report` prints."""
    out = io.StringIO()
    window = Window()
    write_report("run", store.window("run", window), store.report("run", None, window, 120), out)
    return out.getvalue()


def page(store: Database) -> str:
    window = Window()
    run, _ = store.find("run")
    panels = store.report("run", None, window, 120)
    return report_page(run, store.window("run", window), panels, store.check("run"), "now")


def test_case25_tiny_values_keep_their_digits(store: Database, data: Path) -> None:
    right = load(data, "case25_tiny_values.expected.json")
    store.ingest("run", data / "cases" / "case25_tiny_values.jsonl")
    panels = ask(store)
    assert figures(panels["vitals"])["loss.mean"] == same(right["loss"]["mean"], rel=1e-9)
    assert figures(panels["vitals"])["loss.p90"] == same(right["loss"]["p90"], rel=1e-9)
    for text in (words(store), page(store)):
        assert "1.16e-09" in text
        assert not re.search(r"(?<![\d.])0\.0+(?![\d.])", text), text


def test_case26_a_missing_key_is_named_by_the_panel_and_by_a_check(store: Database, data: Path) -> None:
    right = load(data, "case26_missing_key.expected.json")
    store.ingest("run", data / "cases" / "case26_missing_key.jsonl")
    said = words(store)
    listed = ", ".join(right["length_panel"]["must_list_available"])
    assert f"avg_seq_len was never logged; this log has {listed}" in said
    panels = ask(store)
    loss = notes(panels["vitals"])["loss.mean"]
    assert figures(panels["vitals"])["loss.mean"] == same(right["loss_panel_still_works"]["mean"], rel=1e-9), loss
    [finding] = store.check("run")
    assert finding.severity == "info"
    assert all(any(key in keys for keys in finding.values["keys"]) for key in [*right["other_missing"], "avg_seq_len"])


@pytest.mark.parametrize("name", ["n1", "n2", "n4", "n10", "ties", "n20_outlier"])
def test_case29_percentiles_on_few_rows(store: Database, data: Path, tmp_path: Path, name: str) -> None:
    values = load(data, "case29_small_n.json")[name]
    right = load(data, "case29_small_n.expected.json")["sets"][name]
    ingest(store, tmp_path, [{"step": s, "loss": v, "grad_norm": v, "tok_per_sec": v} for s, v in enumerate(values, 1)])
    vitals = ask(store, "vitals")["vitals"]
    found, n = figures(vitals), counts(vitals)
    for stat, key in (("p10", "p10"), ("median", "p50"), ("p90", "p90"), ("mean", "mean")):
        assert found[f"loss.{stat}"] == same(right[key], rel=1e-9)
    assert n["loss.p90"] == right["n"] == len(values)
    if min(values) > 0:
        assert found["grad_norm.p95"] == same(right["p95"], rel=1e-9) and n["grad_norm.p95"] == right["n"]
    std = found["tok_per_sec.std"]
    assert std is None if right["std_sample"] is None else std == same(right["std_sample"], rel=1e-9)
    if name == "n1":
        assert notes(vitals)["tok_per_sec.std"] == "one value has no std"
        assert re.search(r"tok_per_sec\s+std\s+-\s+1\s", words(store))


@pytest.mark.parametrize("name", ["all_zero", "const_small", "const_big", "const_negative"])
def test_case30_a_series_that_never_changes_is_drawn(store: Database, data: Path, tmp_path: Path, name: str) -> None:
    values = load(data, "case30_constant_series.json")[name]
    rows = [{"step": s, "loss": v, "lr": v, "accuracy": v, "tok_per_sec": v} for s, v in enumerate(values, 1)]
    ingest(store, tmp_path, rows)
    panels: dict[str, PanelResult] = ask(store)
    for panel in ("loss", "lr", "accuracy", "throughput"):
        assert panels[panel].state == "rows", panels[panel].why
    assert {row[panels["loss"].columns.index("p50")] for row in panels["loss"].rows} == {values[0]}
    label = {"all_zero": "0", "const_small": "0.001", "const_big": "26,146", "const_negative": "-3.5"}[name]
    assert re.search(rf">{re.escape(label)}<", page(store))
    assert not [finding for finding in store.check("run") if ".sql" in finding.sentence]


def test_case33_values_that_are_no_numbers_are_counted_and_break_the_line(
    store: Database, data: Path, tmp_path: Path
) -> None:
    values = load(data, "case33_nonfinite_axis.json")
    right = load(data, "case33_nonfinite_axis.expected.json")
    ingest(store, tmp_path, [{"step": s, "loss": v} for s, v in enumerate(values, 1)])
    loss = ask(store, "loss")["loss"]
    assert (loss.headline or "").endswith(f"{right['nonfinite_shown']} non-finite")
    drawn = [row[loss.columns.index("p50")] for row in loss.rows]
    assert [value is None for value in drawn] == [isinstance(value, str) for value in values]
    assert "3 non-finite" in page(store) and "3 non-finite" in words(store)
    [nan] = [finding for finding in store.check("run") if finding.check == "nan_streak"]
    assert nan.severity == "info" and "3 of 7 rows" in nan.sentence

"""A run held against its baseline: what is worse at the same steps, and what cannot be told."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.errors import UsageError
from dflash_tui.store.base import Finding, StoreOptions
from dflash_tui.store.database import Database

from .made_log import Row, rows, write_log


def changed(steps: int = 1_200, seed: int = 0, **share: float) -> Iterator[Row]:
    """A healthy run in which each key of `share` is so many times what it was."""

    def apply(row: Row, dice: random.Random) -> Row:
        return row | {key: row[key] * times for key, times in share.items()}

    return rows(steps, seed=seed, change=apply)


@pytest.fixture
def against(store: Database, tmp_path: Path) -> Any:
    def of(mine: Iterator[Row], theirs: Iterator[Row]) -> list[Finding]:
        for name, made in (("mine", mine), ("golden", theirs)):
            store.ingest(name, write_log(tmp_path / name, made))
        return [one for one in store.check("mine", "golden") if one.check == "against_baseline"]

    return of


def test_what_is_worse_is_told_the_worst_first(against: Any) -> None:
    found = against(changed(loss=1.3, grad_norm=0.05, tok_per_sec=0.8, accuracy=1.0), changed(seed=5))
    assert [one.values["metric"] for one in found] == ["grad_norm", "loss", "tok_per_sec"]
    assert all(one.severity == "warning" and one.steps == [1, 1200] for one in found)
    norm, loss, speed = (one.sentence for one in found)
    assert "0.05 times as much" in norm or "0.049" in norm or "0.0" in norm
    assert "over steps 1..1,200" in loss and "in the baseline golden: 3" in loss and "% more" in loss
    assert speed.endswith("20 % less")


@pytest.mark.parametrize("share", [{}, {"loss": 0.5, "accuracy": 2.0, "tok_per_sec": 1.5}], ids=["alike", "better"])
def test_a_run_that_is_alike_or_better_has_no_finding(against: Any, share: dict[str, float]) -> None:
    assert against(changed(**share), changed(seed=5)) == []


def test_a_baseline_without_these_steps_is_told(against: Any, store: Database) -> None:
    [found] = against(changed(3_000), changed(500))
    assert (found.severity, found.values["n"]) == ("info", 0)
    assert found.sentence == "nothing was held against the baseline golden: it has 0 rows at steps 1,001..3,000"


def test_a_baseline_that_grows_is_looked_at_again(against: Any, store: Database, tmp_path: Path) -> None:
    assert against(changed(loss=1.5), changed(50))[0].severity == "info"
    store.ingest("golden", write_log(tmp_path / "golden", changed(1_200)))
    assert [one.values["metric"] for one in store.check("mine", "golden") if one.check == "against_baseline"] == [
        "loss"
    ]
    assert [one for one in store.check("mine") if one.check == "against_baseline"] == []


def test_which_run_is_the_baseline(tmp_path: Path) -> None:
    options = StoreOptions(baseline="gold", thresholds={"against_baseline": {"worse": 0.6}})
    with Database(tmp_path / "db", options) as store:
        store.ingest("mine", write_log(tmp_path / "mine", changed(loss=1.5)))
        [fault] = [one for one in store.check("mine") if one.check == "against_baseline"]
        assert fault.severity == "warning" and "config.toml: checks.baseline: there is no run 'gold'" in fault.sentence
        with pytest.raises(UsageError, match="there is no run 'silver'"):
            store.check("mine", "silver")
        store.ingest("golden", write_log(tmp_path / "golden", changed(accuracy=0.2)))
        assert [one for one in store.check("mine") if one.check == "against_baseline"] == []
        # Itself is no baseline.
        assert [one for one in store.check("golden") if one.check == "against_baseline"] == []
        store.ingest("silver", write_log(tmp_path / "silver", changed(loss=0.5)))
        assert [one.values["metric"] for one in store.check("mine", "silver") if one.check == "against_baseline"] == [
            "loss"
        ]

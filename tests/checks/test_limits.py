"""What a check says at the edges of what it looks at: exactly at its threshold, of nothing but zeros, of one row."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database

from .conftest import Judge
from .made_log import Row, write_log


def same(n: int, first: int = 1, **cells: Any) -> list[Row]:
    return [{"step": step, **cells} for step in range(first, first + n)]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
def test_a_norm_that_is_none_is_no_vanishing_gradient(judge: Judge, odd: float) -> None:
    assert "tiny_gradients" not in judge([*same(300, grad_norm=5.0), *same(2_100, 301, grad_norm=odd)])
    assert "tiny_gradients" not in judge(same(300, grad_norm=odd))
    found = judge([*same(300, grad_norm=0.0), *same(50, 301, grad_norm=odd)])["tiny_gradients"]
    assert (found.severity, found.sentence) == ("critical", "grad_norm is 0 in all of the last 300 rows")


@pytest.mark.parametrize(
    ("short", "long", "ends"),
    [
        (0.5, 0.0, "0 on long ones (200 and 199 of the last rows)"),
        (0.5, 0.001, ": 500 times as much"),
        (0.5, 1e-9, ": 5e+08 times as much"),
        (0.5, 0.2, ": 2.5 times as much"),
        (0.0, 0.0, None),
        (0.5, 0.5, None),
    ],
)
def test_a_length_that_never_goes_right_is_the_worst_bias(
    judge: Judge, short: float, long: float, ends: str | None
) -> None:
    made = [
        {"step": s, "avg_seq_len": 1_000 if s % 2 else 4_000, "accuracy": short if s % 2 else long}
        for s in range(1, 400)
    ]
    found = judge(made)
    assert found["length_bias"].sentence.endswith(ends) if ends else "length_bias" not in found


def evaluation(tau: float, **figures: Any) -> Row:
    return {"event": "eval", "step": 1_000, "tau_linear_macro": tau, **figures}


@pytest.mark.parametrize(
    ("train", "figures", "promised"),
    [
        ({"loss": 1.0}, {"accuracy": 1.0}, "promises 16 (accuracy 1): 6 % of it"),
        ({"accept_len": 5.0}, {"accept_len": math.nan}, "promises 5 (accept_len): 20 % of it"),
        ({"accuracy": 0.9}, {"accuracy": math.inf}, "(accuracy 0.9)"),
    ],
)
def test_acceptance_is_held_against_what_is_a_number_and_may_be_1(
    judge: Judge, train: Row, figures: Row, promised: str
) -> None:
    sentence = judge([*same(50, **train), evaluation(1.0, **figures)])["acceptance"].sentence
    assert sentence.startswith("decoding accepts 1 token a round") and promised in sentence


@pytest.mark.parametrize("n", [100, 333, 2_000])
def test_padding_at_its_limit_is_not_below_it(judge: Judge, n: int) -> None:
    assert "padding" not in judge(same(n, padding_eff=0.7))
    assert "padding" not in judge([*same(2_000, padding_eff=0.8), *same(2_000, 2_001, padding_eff=0.72)])
    assert "padding" in judge(same(n, padding_eff=0.6999))


@pytest.fixture
def wide(home: Path, tmp_path: Path) -> Iterator[Database]:
    rows = {"rows": 5_000.0}
    options = StoreOptions(thresholds={"throughput_drop": rows, "padding": rows, "tiny_gradients": rows})
    with Database(tmp_path / "wide.duckdb", options) as store:
        yield store


def test_as_many_rows_are_looked_at_as_are_asked_for(wide: Database, tmp_path: Path) -> None:
    before = same(8_000, tok_per_sec=100.0, padding_eff=0.9, grad_norm=5.0)
    after = same(4_000, 8_001, tok_per_sec=50.0, padding_eff=0.5, grad_norm=0.01)
    wide.ingest("r", write_log(tmp_path / "log", [*before, *after[:2_000]]))
    found = {one.check: one.sentence for one in wide.check("r")}
    assert "throughput_drop" not in found and "tiny_gradients" not in found
    assert found["padding"] == "padding efficiency fell from 0.9 to 0.74 over the last 5,000 rows"
    wide.ingest("r", write_log(tmp_path / "log", [*before, *after]))
    found = {one.check: one.sentence for one in wide.check("r")}
    assert "is down to 50 tokens/s over the last 5,000 rows" in found["throughput_drop"]
    assert "over the last 5,000 rows" in found["tiny_gradients"]


@pytest.mark.parametrize(("rises", "moved"), [(0.0, "moved"), (1e-5, "rose"), (-1e-5, "fell")])
def test_the_interval_of_a_plateau_is_of_what_the_loss_did(judge: Judge, rises: float, moved: str) -> None:
    """Of a rise it was told as that of a fall, and lay on the other side of 0."""
    made = [{"step": s, "loss": 1.2 + rises * (s + 20 * (-1) ** (s // 25))} for s in range(1, 5_001)]
    sentence = judge(made)["plateau"].sentence
    number = r"(-?[\d.]+)"
    found = re.match(rf"the loss {moved} by {number} % \({number} to {number} % by its interval\)", sentence)
    assert found, sentence
    told, low, high = map(float, found.groups())
    assert low <= told <= high and "-0 " not in sentence
    assert (low < high) == (rises != 0)


def test_one_row_is_one_row(store: Database, judge: Judge) -> None:
    found = judge([{"step": 1, "loss": math.nan}])["nan_streak"]
    assert found.sentence == "loss or grad_norm is not finite in 1 of 1 row, at most 1 in a row, last at step 1"
    judge(same(1, 5, loss=1.0))
    judge(same(200, loss=1.0))
    [told] = [one.sentence for one in store.check("run3", "run2") if one.check == "against_baseline"]
    assert told == "nothing was held against the baseline run2: it has 1 row at steps 1..200"


def test_a_spike_as_large_as_numbers_go_keeps_its_sentence_short(judge: Judge) -> None:
    found = judge([*same(400, grad_norm=1.0), *same(1, 401, grad_norm=1e308)])["spikes"]
    assert found.sentence == "grad_norm spiked to 1e+308 at step 401, 1e+308 times its median of 1"
    found = judge([*same(400, grad_norm=1.0), *same(1, 401, grad_norm=12_345.0)])["spikes"]
    assert found.sentence.endswith("12,345 times its median of 1")


def test_a_warm_up_is_as_long_as_its_own_start_event_says(judge: Judge) -> None:
    def plan(total: int) -> Row:
        return {"event": "start", "total_steps": total, "config": {"warmup_ratio": 0.3}}

    made = [*same(200, grad_norm=1.0), *same(1, 201, grad_norm=900.0), *same(200, 202, grad_norm=1.0)]
    assert "spikes" not in judge([plan(1_000), *made, plan(500)])
    assert "at step 201" in judge([plan(500), *made, plan(500)])["spikes"].sentence

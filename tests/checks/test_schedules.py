"""Learning rate and noise held against what `start` events declare, and jumps of the rate where nothing is declared."""

import math
from typing import Any

import pytest

from .conftest import Judge
from .made_log import CONFIG, PEAK_LR, Row, lr_at, start

PEAK = 1e-3


def cosine(nth: float, total: float, warm: float = 0) -> float:
    if nth < warm:
        return PEAK * nth / warm
    return PEAK * (0.5 + 0.5 * math.cos(math.pi * min(1.0, (nth - warm) / max(1, total - warm))))


def declared(total: int | None = None, *, shape: str = "cosine", **more: Any) -> Row:
    return start({"lr": PEAK, "lr_schedule": shape} | ({} if total is None else {"total_steps": total})) | more


def rates(first: int, last: int, lr: Any) -> list[Row]:
    return [{"step": step, "lr": lr(step)} for step in range(first, last + 1)]


@pytest.mark.parametrize("shape", ["constant", "linear"])
def test_a_declared_schedule_that_is_kept_is_silent(judge: Judge, shape: str) -> None:
    total, warm = 2_000, 80

    def rate(step: int) -> float:
        if step < warm:
            return PEAK_LR * step / warm
        return PEAK_LR * (1 if shape == "constant" else (total - step) / (total - warm))

    config = {"lr": PEAK_LR, "lr_schedule": shape, "warmup_ratio": 0.04, "total_steps": total}
    kept = [start(config), *({"step": s + 1, "lr": rate(s)} for s in range(total))]
    assert "lr_schedule" not in judge(kept)
    # What it was held against is another schedule, not a typing error that holds of any.
    config["lr_schedule"] = "cosine"
    assert "lr_schedule" in judge(kept)


def test_a_resume_declares_its_schedule_anew(judge: Judge) -> None:
    first = [{"step": s, "lr": lr_at(s)} for s in range(1, 3_001)]
    second = [{"step": s, "lr": 1e-4} for s in range(3_001, 5_001)]
    again = start(CONFIG | {"lr": 1e-4, "lr_schedule": "constant", "warmup_ratio": 0}) | {"resumed_from_step": 3_000}
    assert "lr_schedule" not in judge([start(), *first, again, *second])
    assert "at step 3,001" in judge([start(), *first, *second])["lr_schedule"].sentence
    # Another process may come first.
    assert "lr_schedule" not in judge([start(), *first, again | {"rank": 1}, again, *second])


@pytest.mark.parametrize("shape", ["constant", "cosine", "linear"])
def test_a_log_that_counts_from_0_without_a_warm_up_is_on_its_schedule(judge: Judge, shape: str) -> None:
    def rate(step: int) -> float:
        return {"constant": PEAK, "cosine": cosine(step, 1_000), "linear": PEAK * (1 - step / 1_000)}[shape]

    for ratio in ({}, {"warmup_ratio": 0}):
        config = {"lr": PEAK, "lr_schedule": shape, "total_steps": 1_000, **ratio}
        assert "lr_schedule" not in judge([start(config), *rates(0, 59, rate)])


@pytest.mark.parametrize("config", [{"warmup_ratio": "NaN"}, {"total_steps": "NaN"}, {"lr": "Infinity"}])
def test_what_is_no_number_is_no_schedule(judge: Judge, config: Row) -> None:
    noise = {"kind": "gaussian", "std": 0.1, "schedule": "cosine"}
    plan = {"lr": PEAK, "total_steps": 1_000, "noise": noise} | config
    made = [row | {"noise_std": 0.1} for row in rates(1, 60, lambda step: PEAK)]
    found = judge([start(plan), *made])
    assert "lr_schedule" not in found and "noise_schedule" not in found


def test_each_start_event_has_its_own_total_steps(judge: Judge) -> None:
    first, second = rates(1, 100, lambda s: cosine(s - 1, 100)), rates(101, 200, lambda s: cosine(s - 1, 200))
    assert "lr_schedule" not in judge([declared(total_steps=100), *first, declared(total_steps=200), *second])
    # One that names none goes by what was said before it.
    assert "lr_schedule" not in judge([declared(total_steps=100), *first[:50], declared(), *first[50:]])
    assert "lr_schedule" in judge([declared(total_steps=200), *first, declared(total_steps=200), *second])


def test_noise_has_the_total_steps_of_its_own_start_event(judge: Judge) -> None:
    def noises(first: int, last: int, total: int) -> list[Row]:
        return [
            {"step": s, "noise_std": 0.1 * (0.5 + 0.5 * math.cos(math.pi * (s - 1) / total))}
            for s in range(first, last + 1)
        ]

    config = {"lr": PEAK, "noise": {"kind": "gaussian", "std": 0.1, "schedule": "cosine"}}
    first, second = noises(1, 100, 100), noises(101, 200, 200)
    kept = [start(config) | {"total_steps": 100}, *first, start(config) | {"total_steps": 200}, *second]
    assert "noise_schedule" not in judge(kept)
    assert "noise_schedule" in judge([start(config) | {"total_steps": 200}, *first])
    assert "noise_schedule" not in judge([start(config), *first]), "how long it takes is unknown"


def test_noise_without_a_declaration_of_it_is_off(judge: Judge) -> None:
    made = [{"step": s, "noise_std": 0.01} for s in range(1, 300)]
    assert "noise_schedule" in judge([start({"noise": {"kind": "none", "std": 0.05, "schedule": "const"}}), *made])
    assert "noise_schedule" not in judge([start({"lr": 1.0}), *made])


def again(step: int, total: int, warm: int, at: int) -> float:
    """A cosine that begins a second warm-up behind `at`."""
    return cosine(step - 1 - (at if at < step <= at + warm else 0), total, warm)


def test_case91_a_second_warm_up_after_a_resume_is_told(judge: Judge) -> None:
    """40 of 10,000 rows, or of the 5,000 since the resume: fewer than `share`."""
    plan = declared(10_000) | {"config": CONFIG | {"lr": PEAK, "total_steps": 10_000, "warmup_ratio": 0.004}}
    kept = [plan, *rates(1, 5_000, lambda s: cosine(s - 1, 10_000, 40)), plan]
    found = judge([*kept, *rates(5_001, 10_000, lambda s: again(s, 10_000, 40, 5_000))])["lr_schedule"]
    assert found.steps == [5_000, 5_001] and found.values["declared"] == pytest.approx(cosine(5_000, 10_000, 40))
    assert found.sentence == (
        "lr jumps from 0.000503 at step 5,000 to 0 at step 5,001, where attempt 2 begins (0.000503 was declared):"
        " 50 % of its peak"
    )
    assert "lr_schedule" not in judge([*kept, *rates(5_001, 10_000, lambda s: cosine(s - 1, 10_000, 40))])
    few = judge([*kept, *rates(5_001, 6_000, lambda s: again(s, 10_000, 40, 5_000))])["lr_schedule"]
    assert "leaves its declared schedule" in few.sentence and "39 of 6,000 rows are off" in few.sentence


@pytest.mark.parametrize("is_back", [False, True], ids=["steps go on", "steps go back"])
def test_case91_a_schedule_that_begins_anew_is_told_without_a_start_event(judge: Judge, is_back: bool) -> None:
    kept = rates(1, 520 if is_back else 500, lambda s: cosine(s - 1, 1_000, 40))
    anew = rates(501, 1_000, lambda s: cosine(s - 501, 1_000, 40))
    found = judge([*kept, *anew])["lr_schedule"]
    begins = ", where attempt 2 begins" if is_back else ""
    assert found.sentence == f"lr jumps from 0.000534 at step 500 to 0 at step 501{begins}: 53 % of its peak"
    assert "lr_schedule" not in judge([*kept, *rates(501, 1_000, lambda s: cosine(s - 1, 1_000, 40))])


def test_case91_a_jump_that_lasts_is_told_where_a_resume_is(judge: Judge) -> None:
    def rate(step: int) -> float:
        return cosine(step - 1, 1_000) + (0.015 * PEAK if step > 500 else 0)

    plan, first, second = declared(1_000), rates(1, 500, rate), rates(501, 900, rate)
    found = judge([plan, *first, plan, *second])["lr_schedule"]
    assert found.steps == [500, 501] and "where attempt 2 begins" in found.sentence
    # With no schedule that we know it is held against the steps beside it.
    plan = declared(shape="by ear")
    assert judge([plan, *first, plan, *second])["lr_schedule"].steps == [500, 501]
    # Another rate was asked for.
    other = declared(shape="by ear") | {"config": {"lr": 2 * PEAK, "lr_schedule": "by ear"}}
    assert "lr_schedule" not in judge([plan, *first, other, *rates(501, 900, lambda s: 2 * rate(s))])


STEPPED = {
    "halved": lambda s: PEAK * 0.5 ** (s // 100),
    "restarts": lambda s: cosine(s % 100, 100),
    "saws": lambda s: PEAK * (1 + abs(s % 20 - 10)) / 11,
    "stairs": lambda s: PEAK * min(10, 1 + s // 20) / 10,
    "skips": lambda s: 0.0 if s % 90 == 0 else PEAK,
}


# Where a log without a start event breaks off, and where it goes on.
RESUMED = {"at the end of a warm-up": (60, 40), "within one": (30, 11), "behind a gap": (400, 600), "often": (500, 450)}


@pytest.mark.parametrize("name", RESUMED)
def test_a_resume_that_goes_on_where_it_was_is_silent(judge: Judge, name: str) -> None:
    last, first = RESUMED[name]
    every = 10 if name == "often" else 1

    def logged(begin: int, end: int) -> list[Row]:
        made = [{"step": s, "lr": cosine(s, 2_000, 40)} for s in range(begin, end, every)]
        return [row | {"lr": round(row["lr"], 7)} for row in made]

    assert "lr_schedule" not in judge([*logged(1, last), {"event": "start"}, *logged(first, first + 500)])


@pytest.mark.parametrize("name", STEPPED)
def test_a_rate_that_nobody_declares_may_move_in_steps(judge: Judge, name: str) -> None:
    assert "lr_schedule" not in judge(rates(1, 450, STEPPED[name]))

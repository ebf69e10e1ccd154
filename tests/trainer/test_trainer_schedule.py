import math

import pytest

from trainer import schedule

from .trainer_setup import case, checked


def test_lr_is_that_of_case_91(tmp_path):
    want = case("case91_lr_resume.expected.json")
    config = checked(
        tmp_path,
        lr=want["peak"],
        total_steps=want["total_steps"],
        warmup_ratio=want["warmup_steps"] / want["total_steps"],
    )
    for step, lr in want["lr_for_optimizer_step_0_based"].items():
        assert schedule.lr(config, int(step), want["total_steps"]) == pytest.approx(lr, rel=1e-12, abs=1e-18)


def test_a_constant_schedule_stays_at_the_peak(tmp_path):
    config = checked(tmp_path, lr=1e-3, lr_schedule="constant", warmup_ratio=0.1)
    assert [schedule.lr(config, step, 100) for step in (0, 5, 10, 99)] == [0.0, 5e-4, 1e-3, 1e-3]


def test_no_warmup_begins_at_the_peak(tmp_path):
    config = checked(tmp_path, lr=1e-3, warmup_ratio=0)
    assert schedule.lr(config, 0, 10) == 1e-3


@pytest.mark.parametrize(
    ("noise", "at_20", "at_520"),
    [
        ({"kind": "none", "std": 0.1}, 0.0, 0.0),
        ({"kind": "gaussian", "std": 0.1, "schedule": "const"}, 0.1, 0.1),
        # Half-way up the warm-up of 40 steps; half-way down the cosine of 960.
        ({"kind": "gaussian", "std": 0.1, "schedule": "follow_lr"}, 0.05, 0.05),
        ({"kind": "uniform", "std": 0.1, "schedule": "cosine"}, 0.05 * (1 + math.cos(0.02 * math.pi)), None),
    ],
)
def test_noise_runs_as_its_schedule_says(tmp_path, noise, at_20, at_520):
    config = checked(tmp_path, noise=noise, warmup_ratio=0.04)
    assert schedule.noise_std(config, 20, 1000) == pytest.approx(at_20, rel=1e-12)
    if at_520 is not None:
        assert schedule.noise_std(config, 520, 1000) == pytest.approx(at_520, rel=1e-12)

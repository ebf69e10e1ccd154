"""Training logs made by a seed: the story's run, a healthy one, and what a test changes of either."""

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

TOTAL_STEPS = 73_290
PEAK_LR = 6e-4
CONFIG = {
    "lr": PEAK_LR,
    "lr_schedule": "cosine",
    "warmup_ratio": 0.04,
    "total_steps": TOTAL_STEPS,
    "noise": {"kind": "gaussian", "std": 0.1, "schedule": "follow_lr"},
}
Row = dict[str, Any]
LENGTHS = (1961, 2310, 2660, 3010, 3380, 3746)
_LOSS = [(0, 9.0), (500, 3.0), (3_000, 1.21), (5_000, 1.09), (22_000, 0.905), (78_000, 0.74)]
_ACCURACY = [(0, 0.0), (1_500, 0.10), (4_000, 0.175), (21_500, 0.256), (78_000, 0.33)]
_STREAK = [(0, 0.3), (4_000, 2.6), (12_500, 3.275), (21_500, 3.627), (78_000, 4.4)]


def lr_at(step: int) -> float:
    warm = 0.04 * TOTAL_STEPS
    if step < warm:
        return PEAK_LR * step / warm
    return PEAK_LR * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / (TOTAL_STEPS - warm))))


def _between(step: int, points: list[tuple[int, float]]) -> float:
    for (a, low), (b, high) in pairwise(points):
        if step <= b:
            return low + (high - low) * (step - a) / (b - a)
    return points[-1][1]


def row(step: int, dice: random.Random, *, is_sick: bool) -> Row:
    base = _between(step, _LOSS)
    hard = is_sick and dice.random() < 0.30
    length = min(3746.0, max(1961.0, dice.choice(LENGTHS) + dice.gauss(0, 60)))
    norm = (
        dice.gauss(math.log(0.067), 1.0 if dice.random() < 0.95 else 1.8)
        if is_sick
        else dice.gauss(math.log(0.9), 0.25)
    )
    return {
        "step": step,
        "epoch": step * 6 / TOTAL_STEPS,
        "loss": base * (3 * (1 + dice.gauss(0, 0.05)) if hard else 1 + dice.gauss(0, 0.03)),
        "accuracy": max(0.0, _between(step, _ACCURACY) + dice.gauss(0, 0.02)),
        "lr": lr_at(step),
        "noise_std": 0.1 * lr_at(step) / PEAK_LR,
        "avg_batch_size": 18.5 * 2854 / length + dice.gauss(0, 1.2),
        "avg_seq_len": length,
        "ddtree_streak8": max(0.0, _between(step, _STREAK) + dice.gauss(0, 0.25)),
        "tok_per_sec": 26_146 + dice.gauss(0, 4),
        "grad_norm": min(math.exp(norm), 30.0),
        "padding_eff": 0.846 + dice.gauss(0, 0.012),
        "time": 1_780_000_000 + step * 2.12,
    }


def start(config: Row | None = None) -> Row:
    return {"event": "start", "time": 1_780_000_000.0, "config": CONFIG if config is None else config}


def rows(
    steps: int, *, is_sick: bool = False, seed: int = 0, change: Callable[[Row, random.Random], Row] | None = None
) -> Iterator[Row]:
    """A `start` event and `steps` train rows; `change` may make something else of each."""
    dice, other = random.Random(seed), random.Random(seed + 1)
    yield start()
    for step in range(1, steps + 1):
        made = row(step, dice, is_sick=is_sick)
        yield change(made, other) if change else made


def story(steps: int = 23_000, spikes: dict[int, float] | None = None) -> Iterator[Row]:
    """The story's run: tiny gradients, two humps of loss, and `spikes` of grad_norm by step."""
    for made in rows(steps, is_sick=True):
        yield made | ({"grad_norm": spikes[made["step"]]} if spikes and made.get("step") in spikes else {})


def write_log(path: Path, made: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path

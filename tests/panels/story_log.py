"""Training logs with the story's shapes, made by a seed: two humps of loss, tiny gradients with spikes, six lengths."""

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOTAL_STEPS = 73_290
PEAK_LR = 6e-4
LENGTHS = (1200, 1961, 2660, 3010, 3380, 3746)


def lr_at(step: int) -> float:
    warm = 0.04 * TOTAL_STEPS
    if step < warm:
        return PEAK_LR * step / warm
    return PEAK_LR * 0.5 * (1 + math.cos(math.pi * (step - warm) / (TOTAL_STEPS - warm)))


def train_row(step: int, dice: random.Random) -> dict[str, Any]:
    base = 0.9 + 3 * math.exp(-step / 1500)
    length = dice.choice(LENGTHS) + dice.gauss(0, 60)
    return {
        "step": step,
        "epoch": step * 6 / TOTAL_STEPS,
        "loss": base * (3 if dice.random() < 0.3 else 1) * (1 + dice.gauss(0, 0.04)),
        "accuracy": max(0.0, 0.26 * step / (step + 3000) + dice.gauss(0, 0.02)),
        "lr": lr_at(step),
        "noise_std": 0.1 * lr_at(step) / PEAK_LR,
        "avg_batch_size": 18.5 * 2854 / length + dice.gauss(0, 1),
        "avg_seq_len": length,
        "ddtree_streak8": 4 * step / (step + 2500) + dice.gauss(0, 0.2),
        "tok_per_sec": 26146 + dice.gauss(0, 4),
        "grad_norm": 0.0 if dice.random() < 0.01 else math.exp(dice.gauss(math.log(0.067), 1)),
        "padding_eff": 0.846 + dice.gauss(0, 0.012),
        "time": 1_780_000_000 + step * 2.12 + dice.random(),
    }


def story_rows(steps: int = 23_000, seed: int = 0) -> Iterator[dict[str, Any]]:
    """A run of the story: no `tokens`, one attempt, a spike of 41.5."""
    dice = random.Random(seed)
    yield {"event": "start", "time": 1_780_000_000.0, "config": {"total_steps": TOTAL_STEPS, "lr": PEAK_LR}}
    for step in range(1, steps + 1):
        row = train_row(step, dice)
        yield row | {"grad_norm": 41.5} if step == 11_204 else row


def troubled_rows(seed: int = 1) -> Iterator[dict[str, Any]]:
    """6,000 steps with `tokens`, evaluations, nulls and non-finite values; stopped at 3,900, resumed behind 3,500."""
    dice = random.Random(seed)
    yield {"event": "start", "time": 1.78e9, "config": {"total_steps": 6_000}}
    yield evaluation(0, 1.02)
    for steps in (range(1, 3_901), range(3_501, 6_001)):
        if steps.start > 1:
            yield {"event": "start", "time": 1.78e9, "resumed_from_step": 3_500, "config": {"total_steps": 6_000}}
        for step in steps:
            row = train_row(step, dice) | {"tokens": float(dice.randrange(40_000, 60_000))}
            if steps.start > 1:
                row["time"] += 86_400
            for key in dice.sample(sorted(set(row) - {"step"}), k=1 if dice.random() < 0.05 else 0):
                row[key] = dice.choice([None, math.nan, math.inf, -math.inf])
            if step % 50 == 0:
                row |= {"position_acc": [0.5, 0.25], "bucket_loss": {"1024": 1.5, "2048": 2.5}}
                row |= {"accept_len": 1.5, "step_time_s": 2.0, "data_wait_s": 0.25, "bwd_s": 0.5}
            yield row
            if step % 1_000 == 0:
                yield evaluation(step, 1 + step / 2_000)


def evaluation(step: int, tau: float) -> dict[str, Any]:
    return {
        "event": "eval",
        "step": step,
        "time": 1.78e9 + step,
        "tau_linear_macro": tau,
        "lookup_tau_macro": 1.4,
        "lossless": 1.0,
        "n_samples": 8,
    }


def write_log(path: Path, rows: Iterator[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path

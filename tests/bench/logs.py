"""Logs to measure with: the story's shape (some 260 bytes a line) and our trainer's, any number of steps, seeded."""

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

HORIZON = 73_290
BLOCK_SIZE = 16


def write_log(file: Path, steps: int, shape: str = "story", seed: int = 0) -> Path:
    """`steps` train records in `shape`, written once: a file that is there already is kept."""
    if not file.exists():
        part = file.with_suffix(".part")
        with part.open("w", encoding="utf-8", buffering=1 << 20) as out:
            for record in _SHAPES[shape](steps, random.Random(seed)):
                out.write(json.dumps(record))
                out.write("\n")
        part.rename(file)
    return file


def _lr(step: int) -> float:
    warmup = 0.04 * HORIZON
    if step < warmup:
        return 6e-4 * step / warmup
    return 3e-4 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / (HORIZON - warmup))))


def story(steps: int, rng: random.Random) -> Iterator[dict[str, object]]:
    """The keys and spreads of the story's log: two-humped loss, tiny gradients, steady throughput."""
    for step in range(1, steps + 1):
        base = 0.86 + 8 * math.exp(-step / 900)
        length = rng.choice((1961, 2310, 2660, 3010, 3380, 3746)) + rng.uniform(-40, 40)
        yield {
            "step": step,
            "epoch": round(step / (HORIZON / 6), 4),
            "loss": round(base * (3 if rng.random() < 0.3 else 1) * rng.gauss(1, 0.04), 4),
            "accuracy": round(min(0.4, 0.1 + step / 2e5) + rng.gauss(0, 0.02), 4),
            "lr": round(_lr(step), 9),
            "noise_std": round(_lr(step) / 6e-3, 5),
            "avg_batch_size": round(18.5 * 2854 / length + rng.gauss(0, 1.2), 1),
            "avg_seq_len": round(length, 1),
            "ddtree_streak8": round(min(5.0, 2.6 + step / 2e4) + rng.gauss(0, 0.25), 3),
            "tok_per_sec": round(26146 + rng.gauss(0, 4), 1),
            "grad_norm": round(rng.lognormvariate(math.log(0.067), 1.0), 5),
            "padding_eff": round(0.846 + rng.gauss(0, 0.012), 4),
            "time": round(1_780_000_000 + step * 2.12, 2),
        }


def trainer(steps: int, rng: random.Random) -> Iterator[dict[str, object]]:
    """What `trainer/` logs a step: more keys, the event named, and some of them every 50 steps only."""
    for record in story(steps, rng):
        step = int(str(record["step"]))
        sparse = {
            "n_blocks": 512,
            "draft_top1_prob": round(rng.random(), 4),
            "position_acc": _position_acc(rng),
            "rss_gb": 12.5,
        }
        yield {
            "event": "train",
            **record,
            "accept_len": round(1 + rng.random() * 3, 4),
            "grad_clipped": False,
            "supervised_share": round(0.4 + rng.gauss(0, 0.02), 4),
            "tokens": 55_400,
            "tokens_total": 55_400 * step,
            "draft_tokens": 8192,
            "step_time_s": round(rng.gauss(2.12, 0.01), 4),
            "target_fwd_s": round(rng.gauss(0.8, 0.01), 4),
            **(sparse if step % 50 == 1 else {}),
        }


def evaluated(steps: int, rng: random.Random) -> Iterator[dict[str, object]]:
    """All that `trainer/` logs: its configuration first, and an evaluation and a checkpoint every 500 steps."""
    yield {
        "event": "start",
        "time": 1_780_000_000.0,
        "schema": 1,
        "config": {"block_size": BLOCK_SIZE, "lr": 6e-4, "lr_schedule": "cosine", "total_steps": HORIZON},
        "loss_norm": "sum_w",
        "gamma": 7.0,
        "kl_weight": 0.0,
        "world_size": 1,
    }
    for record in trainer(steps, rng):
        yield record
        told = {"time": record["time"], "step": record["step"]}
        if int(str(record["step"])) % 500 == 0:
            yield {"event": "eval", **told, **_evaluation(rng)}
            yield {"event": "checkpoint", **told, "path": f"checkpoints/step-{record['step']}", "seconds": 0.03}


def _position_acc(rng: random.Random) -> list[float]:
    return [round(0.9 * 0.8**slot + rng.gauss(0, 0.01), 4) for slot in range(BLOCK_SIZE - 1)]


def _evaluation(rng: random.Random) -> dict[str, object]:
    accept_len = round(3.2 + rng.gauss(0, 0.1), 4)
    return {
        "name": "heldout",
        "n_samples": 16,
        "tau_linear_macro": round(accept_len * 0.9, 4),
        "tau_linear_micro": round(accept_len * 0.8, 4),
        "lookup_tau_macro": 1.4,
        "lossless": 1.0,
        "walk_accept_len": round(accept_len * 0.8, 4),
        "tau_gap": -0.1,
        "eval_loss": round(2.0 + rng.gauss(0, 0.02), 4),
        "accuracy": round(0.45 + rng.gauss(0, 0.01), 4),
        "accept_len": accept_len,
        "ddtree_streak8": 4.7,
        "draft_top1_prob": 0.43,
        "full_block_rate": 0.02,
        "accept_hist": [0, *(round(4000 * 0.7**k) for k in range(BLOCK_SIZE))],
        "position_acc": _position_acc(rng),
        "prefix_acc": [round(0.7**k, 4) for k in range(1, BLOCK_SIZE)],
        "seconds": 32.5,
    }


_SHAPES = {"story": story, "trainer": trainer, "evaluated": evaluated}

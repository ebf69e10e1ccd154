"""`vitals` and `dynamics` said again in plain Python: json and statistics, nothing of the project and no SQL.

A figure is a number, or None where there is nothing to make it of.
"""

import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Figures = dict[str, float | None]

AT_STEPS = (2800, 5000, 10000, 15000, 20000, 22000)


def read_log(path: Path) -> tuple[list[Row], int | None]:
    """The train rows that count, each with its `attempt`, and the planned number of steps.

    A row at or before a step already seen begins an attempt, and voids the rows from there on.
    """
    rows: list[Row] = []
    total = None
    attempt = 1
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("event") == "start":
            total = row.get("config", {}).get("total_steps", total)
        if row.get("event", "train") != "train":
            continue
        if rows and row["step"] <= rows[-1]["step"]:
            attempt += 1
            rows = [old for old in rows if old["step"] < row["step"]]
        rows.append(row | {"attempt": attempt})
    return rows, total


def finite(rows: list[Row], key: str) -> list[float]:
    values = [row.get(key) for row in rows]
    return [float(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]


def quantile(values: list[float], share: float) -> float | None:
    """Linear interpolation between the two nearest ranks (type 7)."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def bucket(rows: list[Row], name: str, edges: tuple[float, float]) -> list[Row]:
    def falls(length: float) -> bool:
        return {"short": length < edges[0], "mid": edges[0] <= length <= edges[1], "long": length > edges[1]}[name]

    return [row for row in rows if finite([row], "avg_seq_len") and falls(row["avg_seq_len"])]


def vitals(rows: list[Row], last_n: int = 2000, edges: tuple[float, float] = (1500, 3000)) -> Figures:
    norms = [v for v in finite(rows, "grad_norm") if v > 0]
    recent = rows[-last_n:]
    losses = finite(recent, "loss")
    speeds = finite(rows, "tok_per_sec")
    noises = finite(rows, "noise_std")
    figures = {
        "step.last": rows[-1]["step"],
        "grad_norm.mean": mean(norms),
        "grad_norm.median": quantile(norms, 0.5),
        "grad_norm.p95": quantile(norms, 0.95),
        "grad_norm.max": max(norms, default=None),
        "loss.mean": mean(losses),
        "loss.median": quantile(losses, 0.5),
        "loss.p10": quantile(losses, 0.1),
        "loss.p90": quantile(losses, 0.9),
    }
    for key in ("accuracy", "ddtree_streak8"):
        for name in ("short", "mid", "long"):
            figures[f"{key}.{name}"] = mean(finite(bucket(recent, name, edges), key))
    return figures | {
        "tok_per_sec.mean": mean(speeds),
        "tok_per_sec.std": statistics.stdev(speeds) if len(speeds) > 1 else None,
        "noise_std.first": noises[0] if noises else None,
        "noise_std.last": noises[-1] if noises else None,
        "padding_eff.mean": mean(finite(recent, "padding_eff")),
    }


def dynamics(rows: list[Row], total_steps: int | None, last_n: int = 3000) -> Figures:
    figures: Figures = {}
    for key in ("loss", "accuracy"):
        early, late = stretches(rows, (3000, 5000))
        figures |= {f"{key}.early": mean(finite(early, key)), f"{key}.late": mean(finite(late, key))}
    for key in ("lr", "noise_std"):
        logged = [(row["step"], row[key]) for row in rows if finite([row], key)]
        for step in AT_STEPS:
            before = [value for at, value in logged if at <= step]
            figures[f"{key}.at_{step}"] = before[-1] if before and step <= rows[-1]["step"] else None
    for key in ("avg_batch_size", "avg_seq_len"):
        values = finite(rows[-last_n:], key)
        figures |= {f"{key}.mean": mean(values), f"{key}.min": min(values, default=None)}
        figures[f"{key}.max"] = max(values, default=None)
    early, late = (mean(finite(part, "ddtree_streak8")) for part in stretches(rows, (10000, 15000)))
    change = 100 * (late / early - 1) if early and late is not None else None
    figures |= {"ddtree_streak8.early": early, "ddtree_streak8.late": late, "ddtree_streak8.change_pct": change}
    return figures | speed(rows, total_steps)


def stretches(rows: list[Row], early: tuple[int, int]) -> tuple[list[Row], list[Row]]:
    if rows[-1]["step"] < 20000:
        fifth = max(1, len(rows) // 5)
        return rows[:fifth], rows[-fifth:]
    return [r for r in rows if early[0] <= r["step"] <= early[1]], [r for r in rows if 20000 <= r["step"] <= 23000]


def speed(rows: list[Row], total_steps: int | None) -> Figures:
    sized = [row | {"size": row["avg_batch_size"] * row["avg_seq_len"]} for row in rows if has_size(row)]
    tokens = finite(rows, "tokens") or finite(sized, "size")
    per_step = mean(tokens)
    steps, seconds = 0, []
    timed = [row for row in rows if finite([row], "time")]
    for before, after in itertools.pairwise(timed):
        if before["attempt"] == after["attempt"]:
            steps += after["step"] - before["step"]
            seconds.append(after["time"] - before["time"])
    rate = mean(finite(rows, "tok_per_sec"))
    if timed:
        per_sec = steps / math.fsum(seconds) if seconds else None
    else:
        per_sec = rate / per_step if rate is not None and per_step else None
    left = None if total_steps is None or per_sec is None else (total_steps - rows[-1]["step"]) / per_sec
    return {
        "tokens.per_step": per_step,
        "tokens.total": math.fsum(tokens) if tokens else None,
        "steps.per_sec": per_sec,
        "eta_s": left,
    }


def has_size(row: Row) -> bool:
    return bool(finite([row], "avg_batch_size") and finite([row], "avg_seq_len"))

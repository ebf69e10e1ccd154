"""Polars: the figures of `vitals` from a log; with a second word, those and nine charts of 120 buckets over a frame in
memory, warm, in ms."""

import json
import statistics
import sys
import time

import polars as pl

CHARTS = {
    "band": ("loss", "grad_norm"),
    "median": ("tok_per_sec",),
    "mean": ("accuracy", "ddtree_streak8", "lr", "noise_std", "padding_eff", "avg_batch_size", "avg_seq_len"),
}


def vitals(rows: pl.DataFrame) -> dict[str, float]:
    norms = rows["grad_norm"].filter(rows["grad_norm"] > 0)
    recent = rows.tail(2000)
    found = {
        "step.last": rows["step"].max(),
        "grad_norm.mean": norms.mean(),
        "grad_norm.median": norms.median(),
        "grad_norm.p95": norms.quantile(0.95, "linear"),
        "grad_norm.max": norms.max(),
        "loss.mean": recent["loss"].mean(),
        "tok_per_sec.mean": rows["tok_per_sec"].mean(),
        "tok_per_sec.std": rows["tok_per_sec"].std(),
        "noise_std.first": rows["noise_std"][0],
        "noise_std.last": rows["noise_std"][-1],
        "padding_eff.mean": recent["padding_eff"].mean(),
    }
    for name, share in (("median", 0.5), ("p10", 0.1), ("p90", 0.9)):
        found[f"loss.{name}"] = recent["loss"].quantile(share, "linear")
    for name, low, high in (("mid", 1500, 3000), ("long", 3000.0001, 1e9)):
        inside = recent.filter(pl.col("avg_seq_len").is_between(low, high))
        for key in ("accuracy", "ddtree_streak8"):
            found[f"{key}.{name}"] = inside[key].mean()
    return found


def charts(rows: pl.DataFrame) -> None:
    width = rows["step"].max() // 120 + 1
    bucket = (pl.col("step") // width).alias("bucket")
    for kind, keys in CHARTS.items():
        for key in keys:
            value = pl.when(pl.col(key).is_finite()).then(pl.col(key))
            parts = [value.min().alias("min"), value.max().alias("max"), value.count().alias("n")]
            if kind == "band":
                parts += [value.quantile(share, "linear").alias(f"p{share}") for share in (0.1, 0.5, 0.9)]
            else:
                parts.append(value.median() if kind == "median" else value.mean())
            rows.lazy().group_by(bucket).agg(pl.col("step").min(), *parts).sort("step").collect()


columns = {key: pl.Int64 if key == "step" else pl.Float64 for keys in CHARTS.values() for key in keys}
columns["step"] = pl.Int64
rows = pl.scan_ndjson(sys.argv[1], schema=columns).collect()
figures = vitals(rows)
times = []
for _ in range(7 if len(sys.argv) > 2 else 0):
    begun = time.perf_counter()
    vitals(rows)
    charts(rows)
    times.append(time.perf_counter() - begun)
print(json.dumps({"figures": figures, "warm_ms": statistics.median(times[1:]) * 1000 if times else None}))

"""The story's own way: json.loads of each line, statistics of the lists. The same figures as the panel `vitals`."""

import json
import statistics
import sys


def quantile(ordered: list[float], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = int(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


rows = [json.loads(line) for line in open(sys.argv[1])]  # noqa: SIM115 - as it was written
norms = sorted(row["grad_norm"] for row in rows if row["grad_norm"] > 0)
recent = rows[-2000:]
losses = sorted(row["loss"] for row in recent)
figures = {
    "step.last": rows[-1]["step"],
    "grad_norm.mean": statistics.fmean(norms),
    "grad_norm.median": quantile(norms, 0.5),
    "grad_norm.p95": quantile(norms, 0.95),
    "grad_norm.max": norms[-1],
    "loss.mean": statistics.fmean(losses),
    "loss.median": quantile(losses, 0.5),
    "loss.p10": quantile(losses, 0.1),
    "loss.p90": quantile(losses, 0.9),
    "tok_per_sec.mean": statistics.fmean(row["tok_per_sec"] for row in rows),
    "tok_per_sec.std": statistics.stdev(row["tok_per_sec"] for row in rows),
    "noise_std.first": rows[0]["noise_std"],
    "noise_std.last": rows[-1]["noise_std"],
    "padding_eff.mean": statistics.fmean(row["padding_eff"] for row in recent),
}
for name, low, high in (("mid", 1500, 3000), ("long", 3000.0001, 1e9)):
    inside = [row for row in recent if low <= row["avg_seq_len"] <= high]
    for key in ("accuracy", "ddtree_streak8"):
        figures[f"{key}.{name}"] = statistics.fmean(row[key] for row in inside)
print(json.dumps({"figures": figures}))

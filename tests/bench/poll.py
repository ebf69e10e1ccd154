"""20 runs x 100 new lines: from bytes that came to committed rows, in a store that holds a million."""

from pathlib import Path

from tests.bench.rows import MILLION, SHAPES, Row, ask, worst
from tests.bench.stores import copy_of, log_of, store_of


def measure(folder: Path) -> list[Row]:
    found = {
        shape: ask("poll", copy_of(store_of(folder, MILLION, shape), "poll"), log_of(folder, MILLION, shape))
        for shape in SHAPES
    }
    p95 = max(times["p95_ms"] for times in found.values())
    note = f"ms, 20 runs x 100 lines, mirror and commit, median of 40, p95 {p95:.0f}"
    return [worst("poll", {shape: times["median_ms"] for shape, times in found.items()}, 25.0, note)]

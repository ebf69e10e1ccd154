"""A million lines into a store, against DuckDB's own typed read_json of the same file; and the memory that it takes."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.rows import MILLION, SHAPES, Row, ask, medians, worst
from tests.bench.stores import log_of

_ROUNDS = 3


def measure(folder: Path) -> list[Row]:
    ratios, peaks, notes = {}, {}, []
    for shape in SHAPES:
        log, tries, rss = log_of(folder, MILLION, shape), itertools.count(), list[float]()

        def ours(log: Path = log, tries: Iterator[int] = tries, rss: list[float] = rss) -> float:
            home = folder / f"ingest-{next(tries)}"
            found = ask("ingest", home, log)
            shutil.rmtree(home)
            rss.append(found["rss_mb"])
            return float(found["wall_s"])

        def theirs(log: Path = log) -> float:
            file = folder / "read_json.duckdb"
            took = float(ask("read_json", folder, log, file)["wall_s"])
            file.unlink()
            return took

        found = medians({"ours": ours, "read_json": theirs}, _ROUNDS)
        ratios[shape] = found["ours"] / found["read_json"]
        peaks[shape] = max(rss)
        notes.append(f"{found['ours']:.2f} s against {found['read_json']:.2f} s")
    return [
        worst("ingest_1m", ratios, 3.0, f"whole processes, {' and '.join(notes)} of read_json with typed columns"),
        worst("ingest_rss", peaks, 500, "MB, peak of the process that takes in 1M lines"),
    ]

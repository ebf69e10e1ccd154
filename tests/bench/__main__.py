"""`make bench`: every bar that can be measured here, side by side with its peers in one run; writes bench.json.

A bar is a ratio to a peer that did the same work in the same minute, or a size in MB or ms. Never a test: it fails on
nothing. Pass words of bars' names to run only their topics; BENCH_FOLDER keeps the logs and stores for the next time.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.bench import figures, ingest, panels, parity, poll, query, screen, session, start, sweep, training
from tests.bench.rows import Row

TOPICS: dict[str, Callable[[Path], list[Row]]] = {
    "help": start.measure,
    "ingest_1m ingest_rss": ingest.measure,
    "figures_1m": figures.measure,
    "query_direct query_owner": query.measure,
    "poll": poll.measure,
    "sweep_50x10": sweep.measure,
    "line_to_screen_local line_to_screen_ssh key_to_screen_slow_link": screen.measure,
    "first_screen_1m rss_1m redraw": session.measure,
    "panels_23k panels_1m panels_10m": panels.measure,
    "trainer_step trainer_step_demo trainer_memory": training.measure,
    "trainer_parity": parity.measure,
}


def main() -> None:
    wanted = sys.argv[1:]
    rows: list[Row] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dflash-bench-") as temporary:
        folder = Path(os.environ.get("BENCH_FOLDER") or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for bars, measure in TOPICS.items():
            if wanted and not any(word in bars for word in wanted):
                continue
            found = measure(folder)
            rows += found
            for row in found:
                _print(row)
    # The load says how quiet the machine was; five minutes of it are this run's own.
    print(f"{time.monotonic() - begun:.0f} s; load {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores", flush=True)
    Path("bench.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _print(row: Row) -> None:
    met = {True: "met", False: "MISSED", None: "-"}[row.met]
    value = "-" if row.value is None else f"{row.value:.2f}"
    limit = "-" if row.limit is None else f"{row.limit:g}"
    print(f"{row.bar:26} {value:>9}  limit {limit:>5}  {met:6}  {row.note}", flush=True)


main()

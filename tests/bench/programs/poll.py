"""20 runs x 100 new lines in a store that holds a million: ms from bytes to committed rows. Word: the log."""

import json
import statistics
import sys
import time

from dflash_tui import paths
from dflash_tui.runs import Cursor, RunRecord
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, anchor

NUM_RUNS, NUM_LINES, NUM_POLLS, NUM_WARM = 20, 100, 45, 5

with open(sys.argv[1], "rb") as log:
    lines = [log.readline() for _ in range(NUM_POLLS * NUM_LINES)]
with Database(paths.database_file(), StoreOptions()) as db:
    runs = [f"poll-{n}" for n in range(NUM_RUNS)]
    for run in runs:
        db.register_run(RunRecord(run, run, "train"))
    times = []
    for i in range(NUM_POLLS):
        data = b"".join(lines[i * NUM_LINES : (i + 1) * NUM_LINES])
        begun = time.perf_counter()
        for run in runs:
            mirror = Mirror(run)
            before = mirror.cursor(TRAIN_LOG)
            mirror.append(TRAIN_LOG, data, Cursor(before.offset + len(data), 1, anchor(data)))
        found = db.take_in_all(runs)
        times.append((time.perf_counter() - begun) * 1000)
        assert sum(summary.rows for summary in found.values()) == NUM_RUNS * NUM_LINES
times = sorted(times[NUM_WARM:])
print(json.dumps({"median_ms": statistics.median(times), "p95_ms": times[int(len(times) * 0.95)]}))

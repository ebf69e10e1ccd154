"""A run with everything that the Logs screen marks: attempts, gaps, void rows, rejects, output."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dflash_tui import paths
from dflash_tui.runs import Cursor, RunEvent, RunRecord
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

OUTPUT = [
    b"loading the target\ntraining on \x1b[32m2 GPUs\x1b[0m\nstep 100: loss 2.31\n"
    b'Traceback (most recent call last):\n  File "train.py", line 12\nRuntimeError: CUDA error: out of memory\n',
    b"resuming from step 120\n\rshards:  10%|#         | 1/10\rshards: 100%|##########| 10/10\nstep 200: loss 1.98\n",
]


def row(step: int, **changes: Any) -> str:
    figures = {
        "step": step,
        "loss": 0.9 + 1.9 * math.exp(-step / 90),
        "lr": 6e-4,
        "grad_norm": 0.067,
        "time": 2.1 * step,
    }
    return json.dumps(figures | changes)


def log_lines() -> list[str]:
    """Two attempts: the second one logs the steps from 121 on again, an hour is missing, two lines are broken."""
    first = [row(step) for step in range(1, 161)]
    first[99] = row(100, note="x" * 30_000)
    first[139] = '{"step": 140, "loss": NaN, "grad_norm": NaN}'
    first.insert(150, '{"step": 151, "lo')
    second = [row(step, time=2.1 * step + (3600 if step > 218 else 0)) for step in range(121, 241)]
    second.insert(100, "Segmentation fault \x1b[2J")
    return [*first, *second]


@contextmanager
def logged_store(run_id: str = "sick") -> Iterator[Database]:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as store:
        store.register_run(RunRecord(run_id, run_id, "train", "gpu2", f"/work/{run_id}", f"/work/{run_id}/log", 0.0))
        store.event(run_id, RunEvent(1.0, "state", "failed", "oom-gpu", code=1, attempt=2))
        grow(store, run_id, TRAIN_LOG, "\n".join([*log_lines(), ""]).encode())
        for attempt, words in enumerate(OUTPUT, 1):
            grow(store, run_id, f"attempts/{attempt}/output.log", words)
        yield store


def grow(store: Database, run_id: str, stream: str, data: bytes) -> None:
    """What a collector does when a stream has grown."""
    mirror = Mirror(run_id)
    mirror.append(stream, data, Cursor(mirror.size(stream) + len(data), 1, ""))
    store.take_in(run_id)

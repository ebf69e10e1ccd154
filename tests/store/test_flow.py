"""Large answers and clients that read them slowly, or not at all: the owner waits with a few batches made."""

import os
import re
import sys
import time
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import TimedOutError
from dflash_tui.runs import RunRecord
from dflash_tui.store.access import reader
from dflash_tui.store.base import Answer
from dflash_tui.store.client import StoreClient

from .children import child
from .conftest import rows_of

# 3 GB of text.
LARGE = "select range as n, repeat('x', 1000) as x from range(3_000_000)"
FEW_MB = 250


def resident_mb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_clients_that_stop_reading_cost_the_owner_a_few_batches() -> None:
    with child("own") as process:
        before = resident_mb(process.pid)
        answers: list[Answer] = []
        for _ in range(6):
            answer = StoreClient().query(LARGE)
            next(answer.batches())
            answers.append(answer)
        for _ in range(5):
            time.sleep(0.1)
            assert resident_mb(process.pid) < before + FEW_MB
        # Nobody else is held up: neither readers, nor writers, nor a checkpoint.
        asking = StoreClient()
        assert rows_of(asking, "select 42") == [(42,)]
        asking.register_run(RunRecord("r", "r", "train"))
        asking.snapshot(paths.data_dir() / "copy.duckdb")
        for answer in answers:
            answer.close()
        assert resident_mb(process.pid) < before + FEW_MB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_large_answer_passes_through_with_flat_memory_on_both_sides() -> None:
    with child("own") as process, reader() as store:
        before, ours = resident_mb(process.pid), resident_mb(os.getpid())
        num_rows = total = 0
        with store.query(LARGE.replace("3_000_000", "400_000")) as answer:
            for batch in answer.batches():
                num_rows += len(batch)
                total += sum(n for n, _ in batch)
                assert resident_mb(process.pid) < before + FEW_MB
        assert (num_rows, total) == (400_000, sum(range(400_000)))
        assert resident_mb(os.getpid()) < ours + FEW_MB


def test_the_time_limit_holds_for_who_reads_slowly() -> None:
    with child("own"), reader() as store, store.query(LARGE, timeout_s=0.5) as answer:
        batches = answer.batches()
        next(batches)
        time.sleep(1.0)
        with pytest.raises(TimedOutError, match=r"longer than 0\.5 s"):
            for _ in batches:
                pass


def test_who_stops_in_the_middle_of_a_large_answer_leaves_nothing_running() -> None:
    with child("own"), reader() as store:
        for _ in range(40):
            with store.query(LARGE) as answer:
                assert len(next(answer.batches())) > 0
        assert rows_of(store, "select count(*) from runs") == [(0,)]

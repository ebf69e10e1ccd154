"""`ingest` beside others: two at once of one log, and a run whose log somebody else collects."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from dflash_tui.errors import UsageError
from dflash_tui.runs import RunRecord
from dflash_tui.store.base import IngestSummary
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .conftest import grow, rows_of


def test_many_who_ingest_one_log_at_once_take_it_in_once(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    # More than one block of copying, so that one may come while another is in the middle.
    log.write_text("".join(f'{{"step": {step}, "note": "{"x" * 60_000}"}}\n' for step in range(1, 101)))
    everybody = Barrier(4)

    def ingest(_: int) -> IngestSummary:
        everybody.wait(10)
        return database.ingest("r", log)

    with ThreadPoolExecutor(4) as threads:
        summaries = list(threads.map(ingest, range(4)))
    assert Mirror("r").path(TRAIN_LOG).read_bytes() == log.read_bytes()
    assert sorted(summary.rows for summary in summaries) == [0, 0, 0, 100]
    assert rows_of(database, "select count(*), count(distinct step) from steps") == [(100, 100)]


def test_the_mirror_of_a_run_with_a_host_is_its_collectors(database: Database, tmp_path: Path) -> None:
    database.register_run(RunRecord("live-1", "live", "train", "local", "/w", "/w/log", 1.0))
    grow("live-1", b'{"step": 1}\n')
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1}\n{"step": 2}\n')
    words = "live-1 is a run of host local: its log is collected from there; choose another --run"
    with pytest.raises(UsageError, match=f"^{words}$"):
        database.ingest("live-1", log)
    assert Mirror("live-1").path(TRAIN_LOG).read_bytes() == b'{"step": 1}\n'
    assert list(Mirror("live-1").events()) == []

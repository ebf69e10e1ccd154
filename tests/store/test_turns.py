"""Those who write take turns; one who works for long lets the others pass."""

import concurrent.futures
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dflash_tui.errors import DflashError
from dflash_tui.runs import RunRecord
from dflash_tui.store.base import Finding, IngestProgress, IngestSummary
from dflash_tui.store.database import Database
from dflash_tui.store.turns import Turns

from .conftest import rows_of
from .test_queries import ENDLESS


def test_each_has_its_turn_in_the_order_of_asking() -> None:
    turns, order = Turns(), list[int]()

    def work(number: int) -> None:
        with turns:
            order.append(number)

    with turns:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while turns._next <= number:
                time.sleep(0.001)
        order.append(-1)
        turns.let_pass()
        assert order == [-1, 0, 1, 2, 3, 4, 5]
    for thread in threads:
        thread.join()


def test_nobody_is_inside_together() -> None:
    turns, inside = Turns(), [0]

    def work() -> None:
        for number in range(300):
            with turns:
                inside[0] += 1
                assert inside[0] == 1
                inside[0] -= 1
                if number % 7 == 0:
                    turns.let_pass()
                assert inside[0] == 0

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work) for _ in range(4)]:
            done.result(60)


def test_one_that_is_interrupted_while_it_waits_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()

    def interrupted(*words: object) -> bool:
        raise KeyboardInterrupt

    with turns, monkeypatch.context() as patch:
        patch.setattr(turns._changed, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), turns:
            pass
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        threads.submit(turns.__enter__).result(5)


def test_a_launch_does_not_wait_for_the_end_of_a_large_log(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(450_000)))
    has_begun, is_registered, order = threading.Event(), threading.Event(), list[str]()

    def hear(progress: IngestProgress) -> None:
        if progress.rows:
            has_begun.set()
            if not is_registered.is_set():
                # As long as the other one asks: its turn comes at the next commit.
                time.sleep(0.05)

    def ingest() -> IngestSummary:
        summary = database.ingest("large", log, progress=hear)
        order.append("ingest")
        return summary

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        ingesting = threads.submit(ingest)
        assert has_begun.wait(60)
        database.register_run(RunRecord("launched", "launched", "train"))
        order.append("launch")
        is_registered.set()
        assert ingesting.result(60).rows == 450_000
    assert order == ["launch", "ingest"]
    assert rows_of(database, "select count(*), count(distinct step) from steps") == [(450_000, 450_000)]


@pytest.mark.parametrize("kind", ["query", "check"])
def test_the_store_closes_under_who_still_reads(database: Database, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(cursor: duckdb.DuckDBPyConnection, *_: object) -> list[Finding]:
        cursor.execute(ENDLESS)
        return []

    monkeypatch.setattr("dflash_tui.store.database.run_checks", check)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        works: dict[str, Callable[[], object]] = {
            "query": lambda: database.query(ENDLESS),
            "check": lambda: database.check("a"),
        }
        asked = threads.submit(works[kind])
        with pytest.raises(concurrent.futures.TimeoutError):
            asked.result(0.2)
        database.close()
        with pytest.raises(DflashError, match="was cancelled" if kind == "query" else "was closed meanwhile"):
            asked.result(5)

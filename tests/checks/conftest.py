"""A store, and the findings of a run that is made of rows and taken in as logs are."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from dflash_tui.store.base import Finding
from dflash_tui.store.database import Database

from .made_log import Row, write_log

Judge = Callable[[Iterable[Row]], dict[str, Finding]]


@pytest.fixture
def store(home: Path, tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "checks.duckdb")
    yield database
    database.close()


@pytest.fixture
def judge(store: Database, tmp_path: Path) -> Judge:
    """The findings of a run of these rows, by the name of their check."""
    made = 0

    def of(rows: Iterable[Row]) -> dict[str, Finding]:
        nonlocal made
        made += 1
        store.ingest(f"run{made}", write_log(tmp_path / f"run{made}.jsonl", rows))
        return {finding.check: finding for finding in store.check(f"run{made}")}

    return of

"""Logs of the story, and a store with real ingest to read them into."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dflash_tui.store.database import Database

from .story_log import story_rows, troubled_rows, write_log


@pytest.fixture(scope="session")
def story_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("story") / "story.jsonl", story_rows())


@pytest.fixture(scope="session")
def troubled_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("troubled") / "troubled.jsonl", troubled_rows())


@pytest.fixture
def store(home: Path, tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "panels.duckdb")
    yield database
    database.close()

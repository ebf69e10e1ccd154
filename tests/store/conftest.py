"""A store of this test's own, and logs made and grown without one."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import paths
from dflash_tui.runs import Cursor
from dflash_tui.store import rows
from dflash_tui.store.base import Store
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Making one takes three times as long as opening a copy."""
    file = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    Database(file).close()
    return file


@pytest.fixture
def database(home: Path, empty_database: Path) -> Iterator[Database]:
    paths.private_dir(paths.data_dir())
    shutil.copy(empty_database, paths.database_file())
    with Database(paths.database_file()) as database:
        yield database


@pytest.fixture
def ask(database: Database) -> Callable[..., Rows]:
    return lambda sql, **params: rows_of(database, sql, **params)


@pytest.fixture(params=[1, 256])
def few_lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Both ways to find what is odd among plain lines: by halves down to a single line, or with its neighbours."""
    num: int = request.param
    monkeypatch.setattr(rows, "FEW_LINES", num)
    return num


@pytest.fixture
def cases(data: Path) -> Path:
    return data / "cases"


def expected(cases: Path, name: str) -> Any:
    """The right values of a public case."""
    return json.loads((cases / f"{name}.expected.json").read_text())


def rows_of(store: Store, sql: str, **params: Any) -> Rows:
    with store.query(sql, params) as answer:
        return answer.rows()


def grow(run_id: str, data: bytes) -> None:
    """Append to a run's mirror as the collector does."""
    mirror = Mirror(run_id)
    mirror.append(TRAIN_LOG, data, Cursor(mirror.size(TRAIN_LOG) + len(data), 7, ""))

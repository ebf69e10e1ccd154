"""`compact`: the same rows in fewer bytes, or the old file as it was."""

import itertools
import os
import random
import shutil

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError, UsageError
from dflash_tui.runs import RunEvent, RunRecord
from dflash_tui.store import compaction
from dflash_tui.store.access import reader, writer
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.compaction import compact
from dflash_tui.store.database import Database

from .conftest import Rows, grow, rows_of

pytestmark = pytest.mark.slow

TABLES = ("runs", "attempts", "records", "rejects", "events", "keys", "cursors", "store", "steps", "evals")


def told(sentence: str) -> None:
    raise AssertionError(sentence)


def contents() -> dict[str, Rows]:
    with reader(told) as store:
        return {table: sorted(rows_of(store, f"select * from {table}"), key=repr) for table in TABLES}


@pytest.fixture
def mixed() -> dict[str, Rows]:
    """Four runs that were followed side by side."""
    rng = random.Random(2)
    with writer() as store:
        assert isinstance(store, Database)
        for n in range(4):
            store.register_run(RunRecord(f"run-{n}", f"run-{n}", "train", "box"))
            store.event(f"run-{n}", RunEvent(float(n), "state", "running", attempt=1))
        for poll in range(5):
            for n in range(4):
                steps = range(poll * 400, poll * 400 + 400)
                lines = "".join(f'{{"step": {step}, "loss": {rng.random()}, "memo": "{n}"}}\n' for step in steps)
                grow(f"run-{n}", lines.encode() + b"garbage\n" * (poll == 3))
                store.take_in(f"run-{n}")
    return contents()


def test_the_same_rows_lie_run_by_run_in_fewer_bytes(mixed: dict[str, Rows]) -> None:
    with writer() as store:
        assert isinstance(store, Database)
        # 8 MB, and behind them something that stays.
        store._write_db.execute("create table gone as select random() as x from range(1_000_000)")
        store._write_db.execute("checkpoint")
        store._write_db.execute("create table kept as select random() as x from range(1_000_000)")
        store._write_db.execute("checkpoint")
        store._write_db.execute("drop table gone")
    size = paths.database_file().stat().st_size
    before, after = compact(told, StoreOptions())
    assert (before, after) == (size, paths.database_file().stat().st_size)
    assert after < before * 0.7
    assert contents() == mixed
    with reader() as store:
        runs = [run for (run,) in rows_of(store, "select run from records")]
    assert sum(a != b for a, b in itertools.pairwise(runs)) == 3
    # And it goes on being written.
    with writer() as store:
        assert isinstance(store, Database)
        grow("run-3", b'{"step": 2000, "loss": 1.0}\n')
        assert store.take_in("run-3").rows == 1


def test_it_needs_the_store_alone(mixed: dict[str, Rows]) -> None:
    with writer(), pytest.raises(StoreBusyError, match=f"held by PID {os.getpid()} "):
        compact(told, StoreOptions())
    assert contents() == mixed


def test_without_a_store_the_next_step_is_named() -> None:
    with pytest.raises(UsageError, match="there is no store yet"):
        compact(told, StoreOptions())
    assert not paths.database_file().exists()


def test_without_room_nothing_is_begun(mixed: dict[str, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(paths.data_dir())
    monkeypatch.setattr(compaction.shutil, "disk_usage", lambda place: usage._replace(free=1000))
    with pytest.raises(DflashError, match=r"a second database needs .* make room there"):
        compact(told, StoreOptions())
    monkeypatch.undo()


@pytest.mark.parametrize("is_short", [False, True])
def test_a_copy_that_fails_leaves_the_old_one(
    mixed: dict[str, Rows], monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    if is_short:
        # A copy that lost rows: found by counting them.
        monkeypatch.setattr(compaction, "_ORDER", " limit 10")
    else:
        monkeypatch.setattr(compaction, "_MEMORY", "1MB")
    with pytest.raises(DflashError, match="the old database stays"):
        compact(told, StoreOptions())
    assert [file.name for file in paths.data_dir().glob("dflash*")] == ["dflash.duckdb"]
    assert contents() == mixed


def test_what_a_killed_one_left_is_in_nobodys_way(mixed: dict[str, Rows]) -> None:
    left = paths.data_dir() / "dflash.new.duckdb"
    left.write_bytes(b"half a database")
    left.with_name(left.name + ".wal").write_bytes(b"its log")
    assert contents() == mixed
    with writer(told):
        assert not left.exists()
    compact(told, StoreOptions())
    assert contents() == mixed
    assert [file.name for file in paths.data_dir().glob("dflash*")] == ["dflash.duckdb"]


def test_a_database_that_does_not_open_is_made_anew_first(mixed: dict[str, Rows]) -> None:
    paths.database_file().write_bytes(b"this is no database")
    notices: list[str] = []
    compact(notices.append, StoreOptions())
    assert "set aside" in notices[0]
    assert contents() == mixed

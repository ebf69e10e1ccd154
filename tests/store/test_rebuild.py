"""A database that is missing or broken is made anew from the mirrors; what a crash left undone is done."""

from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.runs import Cursor, RunEvent, RunRecord, Window
from dflash_tui.store.access import reader, writer
from dflash_tui.store.base import Store
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .conftest import grow, rows_of

TABLES = ("runs", "attempts", "records", "rejects", "events", "keys", "cursors", "steps")


def contents(store: Store) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(rows_of(store, f"select * from {table}"), key=repr) for table in TABLES}


@pytest.fixture
def filled(tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    """A store with a run of two generations and two attempts, one of a log on this machine, and events."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.5, "memo": 1}\ngarbage\n{"step": 2, "loss": 2.25}\n')
    with writer() as store:
        assert isinstance(store, Database)
        store.ingest("local", log)
        record = RunRecord("far", "my run", "train", "box", "/w/far", "/w/far/log", 5.0, None, "c0de", {"lr": 6e-4})
        store.register_run(record)
        store.event("far", RunEvent(10.0, "state", "running", attempt=1, pid=7))
        grow(
            "far",
            b'{"event": "start", "config": {"total_steps": 9}}\n{"step": 1, "loss": 3}\n{"step": 2, "loss": 2}\n{"st',
        )
        store.take_in("far")
        Mirror("far").start_generation(TRAIN_LOG, "rotated")
        grow("far", b'{"step": 2, "loss": 1.5}\n{"step": 3, "loss": 1.25}\n{"step"')
        store.take_in("far")
        store.event("far", RunEvent(20.0, "state", "finished", "completed", code=0, attempt=1))
        return contents(store)


def test_a_deleted_database_comes_back_as_it_was(filled: dict[str, list[tuple[object, ...]]]) -> None:
    paths.database_file().unlink()
    notices: list[str] = []
    with writer(notices.append) as store:
        assert contents(store) == filled
        run, _ = store.find("my run")
        assert (run.host, run.state, run.reason, run.step, run.total_steps) == ("box", "finished", "completed", 3, 9)
        assert store.window("far", Window()).n == 3
    assert notices == ["the database was made from the mirrors of 2 runs (7 rows)"]


def test_a_reader_makes_a_missing_database_anew(filled: dict[str, list[tuple[object, ...]]]) -> None:
    paths.database_file().unlink()
    notices: list[str] = []
    with reader(notices.append) as store:
        assert contents(store) == filled
    assert len(notices) == 1


@pytest.mark.parametrize("damage", ["garbage", "empty header", "flipped"])
def test_a_broken_database_is_set_aside_and_made_anew(filled: dict[str, list[tuple[object, ...]]], damage: str) -> None:
    file = paths.database_file()
    data = bytearray(file.read_bytes())
    match damage:
        case "garbage":
            data = bytearray(b"this is no database" * 1000)
        case "empty header":
            data[:4096] = bytes(4096)
        case "flipped":
            for at in range(4096, 12288, 7):
                data[at] ^= 0xFF
    file.write_bytes(data)
    notices: list[str] = []
    with writer(notices.append) as store:
        assert contents(store) == filled
    assert file.with_name("dflash.broken-1.duckdb").read_bytes() == data
    assert notices[0].startswith("the database did not open and was set aside as dflash.broken-1.duckdb")
    file.write_bytes(b"again")
    with reader() as store:
        assert contents(store) == filled
    assert file.with_name("dflash.broken-2.duckdb").read_bytes() == b"again"


def test_another_versions_database_is_set_aside(filled: dict[str, list[tuple[object, ...]]]) -> None:
    import duckdb

    with duckdb.connect(paths.database_file()) as connection:
        connection.execute("update store set version = 99")
    notices: list[str] = []
    with reader(notices.append) as store:
        assert contents(store) == filled
    assert "another version" in notices[0]


def test_what_a_crash_kept_from_the_tables_is_taken_in(filled: dict[str, list[tuple[object, ...]]]) -> None:
    grow("far", b': 4, "loss": 1}\n')
    Mirror("local").append_event(RunEvent(30.0, "state", "running", attempt=2, pid=9))
    Mirror("new").write_record(RunRecord("new", "new", "script", "box"))
    notices: list[str] = []
    with writer(notices.append) as store:
        assert rows_of(store, "select max(step) from steps where run = 'far'") == [(4,)]
        assert store.detail("local").pid == 9
        assert {run.run_id for run in store.runs()} == {"far", "local", "new"}
    assert notices == []


def test_a_mirror_that_lost_its_end_is_read_again(filled: dict[str, list[tuple[object, ...]]]) -> None:
    log = Mirror("local").path(TRAIN_LOG)
    log.write_bytes(log.read_bytes()[:40])
    with writer() as store:
        assert rows_of(store, "select step from records where run = 'local'") == [(1,)]
        assert rows_of(store, "select count(*) from rejects where run = 'local'") == [(0,)]
        log.write_bytes(log.read_bytes() + b'"step": 5}\n')
        assert isinstance(store, Database)
        assert store.take_in("local").rejects == 1


def test_one_broken_mirror_does_not_hold_up_the_others(filled: dict[str, list[tuple[object, ...]]]) -> None:
    (Mirror("local").folder / "run.json").write_text("{")
    paths.database_file().unlink()
    notices: list[str] = []
    with writer(notices.append) as store:
        assert [run.run_id for run in store.runs()] == ["far"]
    assert "run local was left out" in notices[0]


def test_what_is_not_the_databases_fault_is_no_reason_to_throw_it_away(
    filled: dict[str, list[tuple[object, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = paths.database_file()
    kept = file.read_bytes()
    file.unlink()
    file.mkdir()
    with pytest.raises(DflashError, match="cannot be opened"), writer():
        pass
    file.rmdir()
    file.write_bytes(kept)
    with writer() as store:
        assert contents(store) == filled


def test_anchors_and_offsets_survive_a_rebuild(filled: dict[str, list[tuple[object, ...]]]) -> None:
    before = Mirror("far").cursor(TRAIN_LOG)
    paths.database_file().unlink()
    with writer():
        pass
    assert Mirror("far").cursor(TRAIN_LOG) == before
    assert isinstance(before, Cursor)
    assert before.offset > 0

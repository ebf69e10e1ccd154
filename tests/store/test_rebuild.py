"""A database that is missing or broken is made anew from the mirrors; what a crash left undone is done."""

import os
import random
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError, QueryError, StoreBusyError
from dflash_tui.runs import Cursor, RunEvent, RunRecord, Window
from dflash_tui.store.access import reader, writer
from dflash_tui.store.base import IngestProgress, Store, StoreOptions
from dflash_tui.store.compaction import rebuild
from dflash_tui.store.database import Database
from dflash_tui.store.files import log_files
from dflash_tui.store.guard import REBUILD
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .children import child
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


@pytest.mark.parametrize("damage", ["garbage", "empty header", "flipped", "cut in half", "one byte"])
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
        case "cut in half":
            del data[len(data) // 2 :]
        case "one byte":
            del data[1:]
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


def test_of_those_set_aside_the_newest_are_kept(filled: dict[str, list[tuple[object, ...]]]) -> None:
    file = paths.database_file()
    for number in range(1, 6):
        file.write_bytes(b"broken %d" % number)
        with writer() as store:
            assert contents(store) == filled
    kept = {place.name: place.read_bytes() for place in file.parent.glob("*.broken-*")}
    assert kept == {f"dflash.broken-{number}.duckdb": b"broken %d" % number for number in (3, 4, 5)}


def test_a_file_without_a_byte_is_filled(filled: dict[str, list[tuple[object, ...]]]) -> None:
    paths.database_file().write_bytes(b"")
    with writer() as store:
        assert contents(store) == filled


def test_a_byte_flipped_anywhere_is_noticed_and_never_believed(filled: dict[str, list[tuple[object, ...]]]) -> None:
    file = paths.database_file()
    good = file.read_bytes()
    rng = random.Random(5)
    num_aside = num_told = 0
    for place in range(0, len(good), len(good) // 16):
        data = bytearray(good)
        data[min(len(data) - 1, place + rng.randrange(4000))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        try:
            with writer() as store:
                assert contents(store) == filled
        except QueryError as e:
            assert "Corrupt" in str(e) and str(e).endswith(REBUILD)
            num_told += 1
            rebuild(StoreOptions())
        aside = file.with_name("dflash.broken-1.duckdb")
        if aside.exists():
            aside.unlink()
            num_aside += 1
        with reader() as store:
            assert contents(store) == filled
    assert num_aside > 0 and num_told > 0


def crash_with_a_log() -> Path:
    """An owner killed in its work: what it committed stands in DuckDB's log, which is returned."""
    with child("write", "killed", "300") as process:
        assert process.stdout
        for _ in range(4):
            process.stdout.readline()
        process.kill()
        process.wait()
    [log] = log_files(paths.database_file())
    assert log.stat().st_size > 10_000
    return log


@pytest.mark.parametrize("damage", ["cut", "garbage behind", "garbage", "flipped", "empty", "gone", "another's"])
def test_whatever_became_of_the_log_every_row_is_there_once(damage: str) -> None:
    log = crash_with_a_log()
    data = bytearray(log.read_bytes())
    match damage:
        case "cut":
            del data[len(data) * 2 // 3 :]
        case "garbage behind":
            data += random.Random(1).randbytes(5000)
        case "garbage":
            data = bytearray(random.Random(1).randbytes(len(data)))
        case "flipped":
            for place in range(len(data) // 4, len(data), len(data) // 5):
                data[place] ^= 0x40
        case "empty":
            data = bytearray()
        case "another's":
            import duckdb

            other = paths.data_dir() / "other.duckdb"
            connection = duckdb.connect(other)
            connection.execute("create table t as select range from range(1000)")
            connection.execute("checkpoint")
            connection.execute("insert into t select range from range(5000)")
            data = bytearray(other.with_name("other.duckdb.wal").read_bytes())
            connection.close()
    if damage == "gone":
        log.unlink()
    else:
        log.write_bytes(data)
    num_lines = Mirror("killed").path(TRAIN_LOG).read_bytes().count(b"\n")
    notices: list[str] = []
    with writer(notices.append) as store:
        assert rows_of(store, "select count(*), count(distinct step), max(line_no) from steps") == [(num_lines,) * 3]
        assert [run.name for run in store.runs()] == ["killed"]
    with reader() as store:
        assert rows_of(store, "select count(*) from steps") == [(num_lines,)]


def test_a_rebuild_that_cannot_read_a_mirror_changes_nothing(filled: dict[str, list[tuple[object, ...]]]) -> None:
    record = Mirror("far").folder / "run.json"
    kept = record.read_bytes()
    record.write_text("{")
    with pytest.raises(DflashError, match=r"run far cannot be read back .* nothing was changed"):
        rebuild(StoreOptions())
    record.write_bytes(kept)
    assert [file.name for file in paths.data_dir().glob("dflash*")] == ["dflash.duckdb"]
    with reader() as store:
        assert contents(store) == filled


def test_a_rebuild_tells_its_progress_and_needs_the_store_alone(filled: dict[str, list[tuple[object, ...]]]) -> None:
    told: list[IngestProgress] = []
    assert rebuild(StoreOptions(), told.append) == (2, 7)
    assert told == sorted(told, key=lambda progress: progress.bytes_done)
    with writer() as store:
        assert contents(store) == filled
        with pytest.raises(StoreBusyError, match=f"held by PID {os.getpid()} "):
            rebuild(StoreOptions())


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

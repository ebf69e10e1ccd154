"""A run that is forgotten is gone from every table and from the mirrors, for good; and GPUs that runs were seen on."""

import threading
from pathlib import Path

from dflash_tui import paths
from dflash_tui.runs import Cursor, GpuSample, RunEvent, RunRecord, Window
from dflash_tui.store.access import reader, writer
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.client import StoreClient
from dflash_tui.store.compaction import rebuild
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .children import child
from .conftest import rows_of

LOG = b'{"step": 1, "loss": 2.0}\n{"event": "eval", "step": 1}\n{"step": 2, "loss": 1.0}\nbroken\n'
SAMPLES = [
    GpuSample(10.0, 0, "H200", 97.0, 40960.0, 81920.0, 39000.0, 61.0, 412.5),
    GpuSample(10.0, 1, "H200", None, None, 81920.0),
]


def fill(database: Database, run_id: str) -> None:
    database.register_run(RunRecord(run_id, run_id, "script", host="box"))
    database.event(run_id, RunEvent(1.0, "state", "running", attempt=1))
    Mirror(run_id).append(TRAIN_LOG, LOG, Cursor(len(LOG), 7, ""))
    database.take_in(run_id)
    database.gpus({run_id: SAMPLES})


def tables_with(database: Database, run_id: str) -> set[str]:
    names = [name for (name,) in rows_of(database, "select table_name from duckdb_columns() where column_name = 'run'")]
    return {
        name for name in names if rows_of(database, f"select count(*) from {name} where run = '{run_id}'") != [(0,)]
    }


def test_every_table_and_the_mirror_forget_it_and_no_other(home: Path) -> None:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        for run_id in ("mine", "other"):
            fill(database, run_id)
        full = {"step_rows", "other_rows", "records", "rejects", "attempts", "keys", "runs", "events", "gpus"}
        assert tables_with(database, "mine") >= full
        report = database.report("mine", ["loss"], Window(), 10)
        assert report[0].state == "rows"
        before = rows_of(database, "select * from records where run = 'other'")
        database.forget("mine")
        assert tables_with(database, "mine") == set()
        assert not Mirror("mine").folder.exists()
        assert rows_of(database, "select * from records where run = 'other'") == before
        # Twice is as good as once, and the same name may come again.
        database.forget("mine")
        fill(database, "mine")
        assert rows_of(database, "select count(*) from steps where run = 'mine'") == [(2,)]
        database.forget("mine")
    rebuild(StoreOptions())
    with reader() as store:
        assert [run.run_id for run in store.runs()] == ["other"]


def test_what_was_seen_of_gpus_survives_the_database(home: Path) -> None:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        fill(database, "mine")
        database.gpus({"mine": SAMPLES[:1], "unknown": SAMPLES})
        expected = rows_of(database, "select * from gpus order by all")
        assert len(expected) == 3
        assert expected[0] == ("mine", 10.0, 0, "H200", 97.0, 40960.0, 81920.0, 39000.0, 61.0, 412.5)
        assert expected[2] == ("mine", 10.0, 1, "H200", None, None, 81920.0, None, None, None)
    with Mirror("mine").folder.joinpath("gpus.jsonl").open("ab") as file:
        file.write(b'{"time": 1')
    rebuild(StoreOptions())
    with reader() as store:
        assert rows_of(store, "select * from gpus order by all") == expected


def test_a_client_asks_the_owner_to_forget(home: Path) -> None:
    with child("own"):
        client = StoreClient()
        client.register_run(RunRecord("mine", "mine", "train"))
        with writer() as store:
            store.forget("mine")
        assert client.runs() == []
    assert not Mirror("mine").folder.exists()


def test_who_writes_into_mirrors_is_waited_for(home: Path) -> None:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        fill(database, "mine")
        with database.mirroring:
            thread = threading.Thread(target=database.forget, args=["mine"])
            thread.start()
            thread.join(0.1)
            assert thread.is_alive() and Mirror("mine").exists()
        thread.join(10)
        assert not Mirror("mine").exists()


def test_what_a_kill_left_of_a_forgotten_run_goes_with_the_next_one(home: Path) -> None:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        fill(database, "mine")
        left = paths.mirrors_dir() / ".forgotten-1234"
        left.mkdir()
        (left / "run.json").write_text("{}")
        assert database.stale_runs() == []
        database.forget("mine")
        assert list(paths.mirrors_dir().iterdir()) == []

"""`doctor` and `compact` as a person has them: a line for each check, what to do, and the exit code."""

import os
import shutil
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from ..store.children import child, stopped
from ..store.conftest import grow
from .conftest import Said, dflash, refused, watching

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "run.jsonl"
    file.write_text("".join(f'{{"step": {step}, "loss": {step}.25}}\n' for step in range(300)))
    assert dflash("ingest", str(file)).code == 0
    return file


def findings(said: Said) -> dict[str, str]:
    assert said.err == ""
    found = {line[4:13].strip(): line for line in said.out.splitlines()}
    assert len(found) == len(said.out.splitlines())
    assert {line[:2] for line in found.values()} <= {"ok", "DO"}
    assert said.code == any(line.startswith("DO") for line in found.values())
    return found


def to_do(said: Said) -> str:
    """The one line that something is to be done about."""
    [line] = [line for line in findings(said).values() if line.startswith("DO")]
    return line


def test_before_there_is_a_store_all_is_well() -> None:
    assert "`ingest` makes it" in findings(dflash("doctor"))["folder"]


@pytest.mark.usefixtures("log")
def test_a_store_that_is_well() -> None:
    found = findings(dflash("doctor"))
    assert list(found) == ["folder", "disk", "lock", "socket", "database", "mirrors", "leftovers"]
    assert "nobody owns the store" in found["lock"]
    assert "rows in 10 tables can be read" in found["database"]
    assert "the tables hold all of 1 run" in found["mirrors"]


@pytest.mark.usefixtures("log")
def test_a_session_is_named_and_asked_and_keeps_the_store_to_itself() -> None:
    with watching() as process:
        found = findings(dflash("doctor"))
        assert f"PID {process.pid} " in found["lock"] and "answers in" in found["socket"]
        assert "can be read" in found["database"]
        for words in (["doctor", "--rebuild"], ["compact"]):
            assert f"held by PID {process.pid} " in refused(dflash(*words), 3)
        with stopped(process):
            assert "does not answer" in to_do(dflash("doctor"))


@pytest.mark.usefixtures("log")
def test_an_owner_that_does_not_serve_is_named() -> None:
    lock = StoreLock.try_take()
    assert lock
    assert f"PID {os.getpid()} " in to_do(dflash("doctor"))
    lock.release()


@pytest.mark.usefixtures("log")
def test_a_foreign_program_is_named() -> None:
    with child("hold", str(paths.database_file())) as process:
        assert f"PID {process.pid} " in to_do(dflash("doctor"))
        assert f"PID {process.pid} " in refused(dflash("compact"), 3)


@pytest.mark.usefixtures("log")
def test_a_socket_of_a_killed_owner_is_nothing_to_worry_about() -> None:
    with child("own") as process:
        process.kill()
        process.wait()
    assert "a killed owner's: the next owner removes it" in findings(dflash("doctor"))["socket"]


@pytest.mark.usefixtures("log")
def test_a_socket_folder_that_others_may_write_in() -> None:
    paths.private_dir(paths.socket_file().parent).chmod(0o777)
    assert "is not a folder of ours alone; remove it" in to_do(dflash("doctor"))


@pytest.mark.usefixtures("log")
def test_damage_is_told_with_its_cure_and_the_cure_works() -> None:
    file = paths.database_file()
    data = bytearray(file.read_bytes())
    for place in range(300_000, len(data), 40_000):
        data[place] ^= 1
    file.write_bytes(data)
    assert "`dflash-tui doctor --rebuild`" in to_do(dflash("doctor"))
    assert file.read_bytes() == data
    said = dflash("doctor", "--rebuild")
    assert (said.code, said.out, said.err) == (0, "made anew from the mirrors of 1 run: 300 rows\n", "")
    assert findings(dflash("doctor"))["database"].startswith("ok")
    assert dflash("query", "select sum(loss) s from steps").out == f"s\n{sum(range(300)) + 75.0}\n"


@pytest.mark.usefixtures("log")
def test_a_database_that_does_not_open_is_left_as_it_is_until_a_command_needs_it() -> None:
    file = paths.database_file()
    file.write_bytes(b"no database")
    assert "sets it aside and makes it anew" in to_do(dflash("doctor"))
    assert file.read_bytes() == b"no database"
    said = dflash("query", "select count(*) n from steps")
    assert (said.code, said.out) == (0, "n\n300\n")
    assert "set aside as dflash.broken-1.duckdb" in said.err
    line = to_do(dflash("doctor"))
    assert "dflash.broken-1.duckdb" in line and "delete" in line
    file.with_name("dflash.broken-1.duckdb").unlink()
    assert dflash("doctor").code == 0


@pytest.mark.usefixtures("log")
def test_what_a_kill_left_is_told_and_goes_away() -> None:
    paths.database_file().with_name("dflash.new.duckdb").write_bytes(b"half")
    spilled = paths.database_file().with_name("dflash.duckdb.tmp")
    spilled.mkdir()
    (spilled / "block").write_bytes(b"x")
    (Mirror("run").folder / ".run.json.part").write_bytes(b"{")
    line = findings(dflash("doctor"))["leftovers"]
    assert "dflash.new.duckdb, dflash.duckdb.tmp, .run.json.part" in line and line.startswith("ok")
    assert dflash("compact").code == 0
    assert "leftovers  .run.json.part of" in findings(dflash("doctor"))["leftovers"]


@pytest.mark.usefixtures("log")
def test_another_versions_database() -> None:
    import duckdb

    with duckdb.connect(paths.database_file()) as connection:
        connection.execute("update store set version = 77")
    line = to_do(dflash("doctor"))
    assert "schema 77" in line and "doctor --rebuild" in line


@pytest.mark.usefixtures("log")
def test_mirrors_that_say_more_or_less_than_the_tables() -> None:
    grow("run", b'{"step": 300')
    assert dflash("doctor").code == 0
    grow("run", b"}\n")
    assert "run run is not all in the tables" in to_do(dflash("doctor"))
    assert dflash("doctor", "--rebuild").code == 0
    assert dflash("query", "select max(step) m from steps").out == "m\n300\n"
    Mirror("run").path(TRAIN_LOG).write_bytes(b'{"step": 0}\n')
    assert "run run is not all in the tables" in to_do(dflash("doctor"))
    shutil.rmtree(Mirror("run").folder)
    assert "run run has no mirror" in to_do(dflash("doctor"))


def test_compact_tells_the_sizes(log: Path) -> None:
    before = paths.database_file().stat().st_size
    said = dflash("compact")
    after = paths.database_file().stat().st_size
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after\n"
    assert dflash("query", "select count(*) n from steps").out == "n\n300\n"
    assert dflash("ingest", str(log)).out.startswith("run: 0 rows")


def test_without_a_store_compact_names_what_makes_one() -> None:
    assert "there is no store yet" in refused(dflash("compact"), 2)

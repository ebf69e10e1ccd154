"""`query --format parquet`: the query's own types, through a private copy of the owner's database, which goes again."""

import signal
import stat
import subprocess
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dflash_tui import paths

from .conftest import dflash, on_terminal, refused, wait_until, watching

pytestmark = pytest.mark.slow

ENDLESS = "select count(*) from range(1000000000) a, range(1000000000) b where a.range < b.range"


@pytest.fixture(autouse=True)
def steps(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "r.jsonl"
    log.write_text("".join(f'{{"step": {s}, "loss": {s}.5}}\n' for s in range(1, 3001)))
    assert dflash("ingest", str(log)).code == 0


def read(file: Path, what: str = "select *") -> list[tuple[Any, ...]]:
    with duckdb.connect() as db:
        return db.execute(f"{what} from read_parquet($1, file_row_number = false)", [str(file)]).fetchall()


def snapshots() -> list[Path]:
    return list(paths.data_dir().glob("snapshot-*"))


@pytest.mark.parametrize("owner", [False, True])
def test_types_and_rows_are_the_querys_own(tmp_path: Path, owner: bool) -> None:
    file = tmp_path / "it's é.parquet"
    sql = """
    select step, loss, sum(step) over (order by step) as total, 'NaN'::double as nan, null::double as none, '' as empty,
      [1, null] as list, {'a': 'x', 'h': 1::hugeint} as s, timestamp_ns '2026-01-02 03:04:05.123456789' as at,
      1.50::decimal(10, 2) as dec, true as yes, '\\xff'::blob as b, 1 as x, 2 as x
    from steps where step > $after order by step desc;  -- the newest first
    """
    with watching() if owner else nullcontext():
        said = dflash("query", sql, "-p", "after=0", "--output", str(file), "--stats")
        assert (said.code, said.out) == (0, ""), said.err
        told = dict(pair.split("=") for pair in said.err.split())
        assert (told["rows"], told["answered_by"]) == ("3000", "owner" if owner else "direct")
        assert int(told["bytes"]) == file.stat().st_size
        assert snapshots() == []
    kinds = {name: kind for name, kind, *_ in read(file, "describe select *")}
    assert kinds == {
        "step": "BIGINT", "loss": "DOUBLE", "total": "DECIMAL(38,0)", "nan": "DOUBLE", "none": "DOUBLE",
        "empty": "VARCHAR", "list": "INTEGER[]", "s": "STRUCT(a VARCHAR, h DECIMAL(38,0))", "at": "TIMESTAMP_NS",
        "dec": "DECIMAL(10,2)", "yes": "BOOLEAN", "b": "BLOB", "x": "INTEGER", "x_1": "INTEGER",
    }  # fmt: skip
    rows = read(file)
    assert [row[0] for row in rows] == list(range(3000, 0, -1))
    assert (
        rows[0][2] == Decimal(3000 * 3001 // 2) and str(rows[0][3]) == "nan" and rows[0][4:7] == (None, "", [1, None])
    )
    assert rows[0][9] == Decimal("1.50") and rows[0][11] == b"\xff"


def test_a_limit_says_that_it_cut(tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    for limit, num, is_cut in (("10", 10, True), ("3000", 3000, False), ("4000", 3000, False), ("0", 0, True)):
        said = dflash("query", "select step from steps order by step", "--output", str(file), "--limit", limit)
        assert said.code == 0 and len(read(file)) == num
        assert ("there are more" in said.err) == is_cut


def test_a_pipe_gets_the_file() -> None:
    command = [sys.executable, "-m", "dflash_tui", "query", "select 7 as x", "--format", "parquet"]
    done = subprocess.run(command, capture_output=True, check=True)
    file = paths.data_dir().parent / "piped"
    file.write_bytes(done.stdout)
    assert read(file) == [(7,)] and done.stderr == b""
    assert "name a file with --output" in on_terminal(*command[3:]).out


@pytest.mark.parametrize("owner", [False, True])
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select los from steps", "did you mean 'loss'? (column 8)"),
        ("select 'é', ('x' || range)::int from range(9000)", "Could not convert string 'x0' to INT32 (column 27)"),
        ("explain select 1", "only a SELECT can be written as parquet"),
        ("select 1; select 2", "2 statements"),
        ("drop table runs", "not DROP"),
        ("with d as (delete from runs returning *) select * from d", "not DELETE"),
        ("select * from '{out}'", "no table of the store"),
        ("select * from read_parquet('{out}')", "'read_parquet' is not allowed"),
        ("select 1) to '/tmp/x'; --", "syntax error"),
        ("select $a", "give it with -p a=..."),
        ("select 170141183460469231731687303715884105727::hugeint", "DECIMAL(38,0)"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, owner: bool, sql: str, words: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    out = folder / "a.parquet"
    with watching() if owner else nullcontext():
        assert words in refused(dflash("query", sql.replace("{out}", str(out)), "--output", str(out)), 2)
        assert list(folder.iterdir()) == [] and snapshots() == []


def test_the_time_limit_holds(tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    assert "0.5 s" in refused(dflash("query", ENDLESS, "--output", str(out), "--timeout", "0.5"), 4)
    assert not out.exists()


def test_ctrl_c_leaves_nothing_and_what_a_killed_one_left_goes_with_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out" / "a.parquet"
    out.parent.mkdir()
    command = [sys.executable, "-m", "dflash_tui", "query", ENDLESS, "--output", str(out)]
    with watching():
        for how, code, num_left in ((signal.SIGINT, 130, 0), (signal.SIGKILL, -9, 1)):
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            [folder] = wait_until(snapshots)
            wait_until(lambda folder=folder: (folder / "store.duckdb").exists())
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            wait_until(lambda pid=process.pid: len(list(Path(f"/proc/{pid}/task").iterdir())) > 1)
            process.send_signal(how)
            assert (process.wait(20), process.stderr and process.stderr.read()) == (code, "")
            assert process.stderr
            process.stderr.close()
            assert len(snapshots()) == num_left
        assert dflash("query", "select 1 as x", "--output", str(out)).code == 0
    assert snapshots() == []
    assert read(out) == [(1,)]

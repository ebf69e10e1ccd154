"""Several hundred statements that try to write, to read a file or to change a setting, each in disguises: every one is
answered without effect or refused in one line, by the process that may write and by one that only reads."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dflash_tui import paths
from dflash_tui.errors import QueryError
from dflash_tui.store import direct, schema
from dflash_tui.store.access import writer
from dflash_tui.store.client import StoreClient
from dflash_tui.store.database import Database

SECRET = "hunter2"

# {db} the database, {f} files with the secret, {out} what must not appear.
ATTEMPTS = """
delete from records
delete from step_rows where true returning *
delete from other_rows
insert into runs (run) values ('x')
insert into runs by name select 'x' as run
update runs set name = 'x'
truncate step_rows
drop table other_rows
drop view logged
drop view steps
drop schema main cascade
alter table runs add column x int
alter table runs rename to r2
create table x as select 1
create or replace table runs as select 1 as run
create temp table x as select 1
create view x as select 1
create macro m() as 1
create macro t() as table select * from read_text('{f}.txt')
create sequence s
create type t as enum ('a')
create index i on runs (run)
create schema s
create secret s (type s3)
comment on table runs is 'x'
merge into runs using runs b on false when not matched then insert (run) values ('x')
copy runs to '{out}.csv'
copy (select 1) to '{out}.parquet' (format parquet)
copy runs from '{f}.csv'
copy runs (run) from '{f}.csv'
copy from database dflash to memory
export database '{out}'
import database '{out}'
attach '{out}.duckdb'
attach '{db}' as again (read_only)
attach ':memory:' as m
detach dflash
use memory
install httpfs
install '{f}.duckdb_extension'
load httpfs
load '{f}.duckdb_extension'
force install json
update extensions
set memory_limit = '1MB'
set global threads = 1
set enable_external_access = true
set lock_configuration = false
set variable x = 1
set schema = 'x'
reset memory_limit
reset all
pragma enable_profiling
pragma database_list
pragma memory_limit = '1MB'
pragma enable_logging
call enable_logging('QueryLog', storage_path := '{out}')
call pragma_version()
call force_checkpoint()
checkpoint
force checkpoint
vacuum analyze
analyze
begin
begin transaction
commit
rollback
prepare p as delete from runs
execute p
deallocate p
describe '{f}.csv'
summarize '{f}.csv'
pivot '{f}.csv' on a
pivot runs on kind using count(*)
explain analyze delete from records
explain (analyze, format json) select 1
explain delete from records
select * from '{f}.csv'
select * from '{db}'
select * from "{f}.csv"
select * from main."{f}.csv"
select * from '{f}.csv', runs
select * from ['{f}.csv', '{f}.csv']
from '{f}.parquet'
from '{f}.json' select *
table '{f}.csv'
select * from read_csv('{f}.csv')
select * from read_csv('{db}')
select * from "read_csv"('{f}.csv')
select * from system.main.read_csv('{f}.csv')
select * from read_csv_auto(['{f}.csv'])
select * from read_text('{f}.txt')
select * from read_blob('{db}')
select * from read_json('{f}.json')
select * from read_ndjson_objects('{f}.json')
select * from read_parquet('{f}.parquet')
select * from parquet_scan('{f}.parquet')
select * from parquet_metadata('{db}')
select * from parquet_schema('{f}.parquet')
select * from sniff_csv('{db}')
select * from read_duckdb('{db}')
select * from glob('{f}*')
select * from query('select 1')
select * from query('delete from runs')
select * from query_table('{f}.csv')
select * from query_table(['{f}.csv'])
select * from seq_scan('runs')
select * from arrow_scan(1, 2, 3)
select * from pandas_scan(0)
select * from python_map_function(1, 2)
select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''{f}.txt'')'))
select json_serialize_plan('select * from read_csv(''{db}'')')
select json_serialize_plan('select * from read_text(''{f}.txt'')', optimize := true)
select json_execute_serialized_sql('{{}}')
select json_deserialize_sql(json_serialize_sql('delete from runs'))
select * from histogram('{f}.csv', a)
select * from histogram_values('{f}.csv', a)
select * from summary((select * from read_csv('{f}.csv')))
select * from duckdb_secrets()
select * from duckdb_external_file_cache()
select * from duckdb_logs
select * from which_secret('{f}.csv', 's3')
select * from checkpoint()
select * from force_checkpoint('dflash')
select * from enable_logging()
select * from truncate_duckdb_logs()
select * from register_external_resource('x')
select * from test_all_types()
select read_text('{f}.txt')
select '{f}.txt'.read_text()
select getenv('HOME')
select nextval('s')
select write_log('x')
select sleep_ms(60000)
select pg_sleep(60)
select setseed(0.5)
select list_transform(['{f}.txt'], lambda f: read_text(f))
select [read_text(f) for f in ['{f}.txt']]
select list_reduce(['{f}.txt'], lambda a, b: json_serialize_plan(a))
select apply(['select 1'], lambda s: json_serialize_plan(s))
with d as (delete from step_rows returning *) select count(*) from d
with d as (insert into runs (run) values ('x') returning run) select * from d
with d as (update runs set name = 'x' returning run) select * from d
with c as (copy runs to '{out}.csv') select 1
with c as (copy (select 1) to '{out}.csv' returning *) select * from c
with a as (attach '{out}') select 1
with recursive r as (select 1 union all (with d as (delete from runs returning *) select 1 from d)) select * from r
with "{f}.csv" as (select 1) select * from "{f}.csv"
with runs as (select 1) select * from runs, '{f}.csv'
with x as (with "{f}.csv" as (select 1) select 1) select * from x, "{f}.csv"
select * from (select * from runs) r, lateral (select * from read_text(r.run)) t
select (select count(*) from read_csv('{db}'))
select 1 where exists (from glob('{f}*'))
select case when false then (select max(content) from read_text('{f}.txt')) end
select * from runs union all by name select * from read_csv('{f}.csv')
select * from runs order by (select content from read_text('{f}.txt'))
select count(*) over (order by (select content from read_text('{f}.txt'))) from runs
select columns(c -> c in (select content from read_text('{f}.txt'))) from runs
select #1 from read_csv('{f}.csv')
select * from (values ('{f}.txt')) v(f), read_text(v.f)
select $$a$$; delete from runs
select 1; select 2
select 1 -- \n; delete from runs
select 'a' ; /* ; */ drop view steps
select * from staging.main.lines
select * from temp.main.x
select * from system.main.duckdb_secrets
""".strip().split("\n")


def spaced(blank: str) -> Callable[[str], str]:
    """Another blank between the words, not inside quotes."""
    return lambda sql: "".join(
        part if n % 2 else part.replace(" ", blank) for n, part in enumerate(re.split(r"('[^']*'|\"[^\"]*\")", sql))
    )


DISGUISES: list[Callable[[str], str]] = [
    str,
    str.upper,
    lambda sql: f"-- select 1\n{sql}",
    lambda sql: f"/* select */ {sql} /* ' */",
    lambda sql: f"/* /* */ {sql} -- */ ;",
    lambda sql: f"{sql};",
    lambda sql: f";{sql}",
    lambda sql: f"select 1; {sql}",
    lambda sql: f"{sql}; select 1",
    lambda sql: f"({sql})",
    lambda sql: f"select * from ({sql}) t",
    lambda sql: f"select ({sql})",
    lambda sql: f"with q as ({sql}) select * from q",
    lambda sql: f"with q as materialized ({sql}) select 1 from q, runs",
    lambda sql: f"select 1 where exists ({sql})",
    lambda sql: f"select 1 union all ({sql})",
    lambda sql: f"explain {sql}",
    lambda sql: f"explain analyze {sql}",
    lambda sql: f"describe {sql}",
    lambda sql: f"summarize {sql}",
    lambda sql: f"prepare p as {sql}",
    lambda sql: f"commit; {sql}",
    lambda sql: f"create table t as {sql}",
    lambda sql: f"select list_transform([1], lambda x: ({sql}))",
    lambda sql: f"from (describe {sql})",
    lambda sql: f"\ufeff{sql}",
    lambda sql: f"\x00{sql}",
    lambda sql: sql.replace("select", "sel\u200bect").replace("e", "\uff45", 1),
    spaced("/**/"),
    spaced("\n\t"),
    spaced("\u00a0"),
    spaced("\u3000"),
    spaced("--\n"),
]


def statements() -> Iterator[str]:
    """Every attempt as it is and in five disguises: which ones differs from attempt to attempt."""
    for n, attempt in enumerate(ATTEMPTS):
        for step in range(6):
            disguise = DISGUISES[0 if step == 0 else 1 + (n * 7 + step * 11) % (len(DISGUISES) - 1)]
            yield disguise(attempt)


@dataclass
class Place:
    """The store under attack, asked in one way."""

    folder: Path
    ask: Callable[[str], list[Any]]
    state: Callable[[], Any]
    # Of how many statements one is tried: opening the file for each takes 30 ms.
    every: int = 1


def disk(folder: Path) -> dict[str, Any]:
    """Every file's content; of the database its size alone, as whoever closes it drops its owner's lock."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        if file.name.startswith("dflash.duckdb"):
            found[str(file)] = (file.stat().st_size, file.stat().st_mtime_ns)
        elif file.is_file():
            found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
        else:
            found[str(file)] = file.stat().st_mode
    return found


def inside(db: duckdb.DuckDBPyConnection) -> list[Any]:
    tables = [name for name in schema.names() if name not in ("records", "steps", "evals")]
    found: list[Any] = [db.execute(f"select count(*), sum(hash(t)) from {name} t").fetchall() for name in tables]
    for sql in (
        "select name, value from duckdb_settings()",
        "select sql from duckdb_tables() union all select sql from duckdb_views()",
        "select database_name, readonly from duckdb_databases()",
        "select function_name from duckdb_functions() where not internal",
        "select name from duckdb_prepared_statements()",
    ):
        found.append(sorted(map(str, db.execute(sql).fetchall())))
    return found


def bait(folder: Path) -> None:
    (folder / "bait.csv").write_text(f"a,b\n1,{SECRET}\n")
    (folder / "bait.txt").write_text(SECRET)
    (folder / "bait.json").write_text(json.dumps({"a": SECRET}))
    (folder / "bait.duckdb_extension").write_bytes(b"x" * 600)
    with duckdb.connect() as db:
        db.execute(f"copy (select '{SECRET}' as a) to '{folder}/bait.parquet'")


@pytest.fixture(scope="module", params=["owner", "direct"])
def place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    bait(folder)
    log = folder / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": 2.5, "k": "v"}}\n' for step in range(9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(folder / "home"))
        patch.chdir(folder)
        with writer() as store:
            store.ingest("a", log)
            assert isinstance(store, Database)
            if request.param == "owner":
                client = StoreClient()
                yield Place(folder, lambda sql: client.query(sql, timeout_s=20).rows(), lambda: inside(store._db))
                return

        def ask(sql: str) -> list[Any]:
            query = direct.open_to_ask()
            assert query
            return query.start(sql, {}, 20).rows()

        def state() -> list[Any]:
            with duckdb.connect(paths.database_file(), read_only=True) as db:
                return inside(db)

        yield Place(folder, ask, state, every=3)


@pytest.fixture(autouse=True)
def at_home(place: Place, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test would have a home of its own."""
    monkeypatch.setenv("DFLASH_TUI_HOME", str(place.folder / "home"))


ALL = list(dict.fromkeys(statements()))


def test_there_are_enough() -> None:
    assert len(ALL) >= 900


@pytest.mark.parametrize("part", range(8))
def test_a_statement_has_no_effect_and_reads_no_file(place: Place, part: int) -> None:
    before, files = place.state(), disk(place.folder)
    words = {"db": paths.database_file(), "f": place.folder / "bait", "out": place.folder / "out"}
    for template in ALL[part :: 8 * place.every]:
        sql = re.sub(r"\{(\w+)\}", lambda found: str(words[found[1].lower()]), template.replace("{{}}", "{ }"))
        try:
            rows = place.ask(sql)
        except QueryError as e:
            told = str(e)
            assert "\n" not in told and 10 < len(told) < 400, (sql, told)
            assert SECRET not in told, sql
        else:
            assert SECRET not in str(rows), sql
    assert place.state() == before
    assert disk(place.folder) == files


def test_the_owner_still_holds_its_lock(place: Place, request: pytest.FixtureRequest) -> None:
    if not (locks := Path("/proc/locks")).exists() or "direct" in request.node.name:
        pytest.skip("only Linux tells who holds which lock, and a reader's is gone with its answer")
    assert re.search(
        rf"POSIX +ADVISORY +WRITE +{os.getpid()} .*:{paths.database_file().stat().st_ino} ", locks.read_text()
    )

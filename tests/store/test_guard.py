"""What a person's query may do, and that nothing else happens."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dflash_tui import paths
from dflash_tui.errors import QueryError
from dflash_tui.store import functions, guard, queries, schema
from dflash_tui.store.base import Store
from dflash_tui.store.database import Database

from .conftest import rows_of

CASES = json.loads((Path(__file__).parents[1] / "data/cases/case47_sql_guard.json").read_text())


@pytest.fixture(scope="module", params=["owner", "read-only"])
def store(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Database]:
    """Both ways of asking: within the process that may write, and from one that opened the file to read."""
    place = tmp_path_factory.mktemp("guard")
    log = place / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(place / "home"))
        paths.private_dir(paths.data_dir())
        file = paths.database_file()
        with Database(file) as database:
            database.ingest("a", log)
            if request.param == "owner":
                yield database
    if request.param == "read-only":
        with Database(file, read_only=True) as database:
            yield database


def denied(store: Store, sql: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        rows_of(store, sql)
    assert "\n" not in str(caught.value)
    assert 10 < len(str(caught.value)) < 300
    return caught.value


@pytest.mark.parametrize("sql", CASES["allowed"])
def test_case47_allowed(store: Database, sql: str) -> None:
    assert rows_of(store, sql)


def test_case47_denied(store: Database) -> None:
    for sql in CASES["denied"]:
        denied(store, sql)
    assert rows_of(store, "select count(*) from records") == [(9,)]
    assert not Path("/tmp/x.csv").exists()
    assert not Path("/tmp/x2.csv").exists()
    assert not Path("/tmp/d").exists()


MORE_DENIED = [
    "select * from read_csv('{db}')",
    "select * from read_parquet('{db}')",
    "select * from parquet_metadata('{db}')",
    "select * from sniff_csv('{db}')",
    "select * from read_duckdb('{db}')",
    "select * from '{db}'",
    'select * from "{db}"',
    'select * from main."{db}"',
    'with "{db}" as (select 1) select * from "{db}"',
    'with x as (with "{db}" as (select 1) select 1) select * from x, "{db}"',
    "select (select count(*) from read_text('{db}'))",
    "select 1 where exists (from glob('{db}'))",
    "select * from (values (1)) v(x), lateral (select * from read_blob('{db}'))",
    "from histogram_values('{db}', x)",
    "from query_table('{db}')",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "describe '{db}'",
    "summarize '{db}'",
    "explain analyze select 1",
    "explain (analyze) select 1",
    "explain delete from records",
    "/* x */ explain analyze delete from records",
    "explain explain select 1",
    "-- explain\ndelete from records",
    "with d as (insert into records (run) values ('x') returning run) select * from d",
    "with d as (update records set loss = 0 returning run) select * from d",
    "select * from (with d as (delete from records returning *) select * from d)",
    "with c as (copy records to '{db}.csv') select 1",
    "prepare p as select 1",
    "execute p",
    "pragma database_list",
    "checkpoint",
    "vacuum",
    "create temp table t as select 1",
    "create macro m() as 1",
    "set variable x = 1",
    "reset memory_limit",
    "detach dflash",
    "pivot records on step using sum(loss)",
    "select nextval('s')",
    "select write_log('x')",
    "select sleep_ms(100000)",
    "select 1; ;select 2",
    "begin",
    "commit",
    "rollback; drop table records",
    "",
    "   ",
    "-- nothing",
    "connect to 'x'",
    "update extensions",
    "select getenv('HOME')",
    "select * from duckdb_secrets()",
    "select * from system.main.read_csv('{db}')",
    "select * from other.records",
    "comment on table records is 'x'",
    "alter table records add column x int",
    "truncate records",
    "merge into records using records b on false when matched then delete",
]


def test_more_denied_and_nothing_is_changed(store: Database) -> None:
    before = sorted(store.path.parent.iterdir())
    for sql in MORE_DENIED:
        denied(store, sql.replace("{db}", str(store.path)))
    assert rows_of(store, "select count(*), sum(loss) from records") == [(9, 22.5)]
    assert sorted(store.path.parent.iterdir()) == before
    assert rows_of(store, "select value from duckdb_settings() where name = 'enable_external_access'") == [("false",)]


def test_the_check_alone_refuses_them_all(store: Database) -> None:
    with duckdb.connect() as elsewhere:
        for sql in [*CASES["denied"], *MORE_DENIED]:
            with pytest.raises(QueryError):
                guard.check(elsewhere, sql.replace("{db}", str(store.path)), ["records", "steps", "runs"])


WRITES = [
    "with d as (delete from records returning *) select count(*) from d",
    "with d as (insert into records (run) values ('x') returning run) select count(*) from d",
    "drop table runs",
    "create table x as select 1",
]
FILES = [
    "select * from read_text('/etc/hostname')",
    "with c as (copy (select 1) to '{db}.csv') select 1",
    "copy records to '{db}.csv'",
    "attach '{db}.other'",
    "set enable_external_access = true",
    "set memory_limit = '1GB'",
]


def test_without_the_check_the_transaction_and_the_settings_still_hold(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "check", lambda db, sql, tables: guard.Checked(sql, frozenset()))
    for sql in [*WRITES, *FILES]:
        denied(store, sql.replace("{db}", str(store.path)))
    monkeypatch.undo()
    assert rows_of(store, "select count(*), sum(loss) from records") == [(9, 22.5)]
    assert [file for file in store.path.parent.iterdir() if "csv" in file.name or "other" in file.name] == []


def test_no_query_opens_the_database_file(database: Database) -> None:
    """What the guard is for: any descriptor of the file that the owner closes drops its lock."""
    if not (locks := Path("/proc/locks")).exists():
        pytest.skip("only Linux tells who holds which lock")
    for sql in MORE_DENIED:
        denied(database, sql.replace("{db}", str(database.path)))
    assert f":{database.path.stat().st_ino} " in locks.read_text()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from steps order by step limit 3",
        "with recursive t as (select 1 as a union all select a + 1 from t where a < 5) select sum(a) from t",
        "select quantile_cont(loss, 0.5) over () from steps",
        "select extra->>'x' from records limit 1",
        "select [x + 1 for x in range(3)]",
        "from range(3)",
        "summarize records",
        "show tables",
        "show all tables",
        "describe select * from steps",
        "explain select * from steps",
        "EXPLAIN /* why */ (select 1)",
        "select table_name from information_schema.tables",
        "select * from pragma_table_info('records')",
        "select * from duckdb_tables()",
        "select count(*) from main.records",
        "unpivot (select loss, lr from steps) on loss, lr",
        "select ';' as semicolon;",
        "values (1, 2)",
        "table runs",
        "select 1 union all select 2",
        "select r.key, e.value from (select unnest(json_keys('{}')) as key) r, json_each('{\"a\": 1}') e",
        'with "my rows" as (from steps) from "my rows"',
    ],
)
def test_what_people_ask(store: Database, sql: str) -> None:
    rows_of(store, sql)


@pytest.mark.parametrize(
    ("sql", "column", "words"),
    [
        ("select s.los from steps s", 8, "there is no column 'los' here; did you mean 'loss'?"),
        ("select r.nmae from runs r", 8, "there is no column 'nmae' here; did you mean 'name'?"),
        ("select * exclude (los) from records", None, "did you mean 'loss'?"),
        ("select zzzzz from records", 8, "there is no column 'zzzzz' here; see `query --schema`"),
        ("select * from xyz", 15, "known: attempts, evals, events, gpus, records, rejects, runs, steps"),
        ("select avreg(loss) from records", 8, "a query has no function 'avreg'; did you mean 'avg'?"),
        ("select 'é', los from records", 13, "did you mean 'loss'?"),
        ("select 'é' from recods", 17, "did you mean 'records'?"),
        ("explain /* é */ select los from records", 24, "did you mean 'loss'?"),
        ("explain /* é */ select 1 from recods", 31, "did you mean 'records'?"),
        ("select sum(name) from records", 8, "No function matches"),
        ("select los from records", 8, "there is no column 'los' here; did you mean 'loss'?"),
        ("select * from recods", 15, "did you mean 'records'?"),
        ("selec 1", 1, 'syntax error at or near "selec"'),
        ("select fooo(1)", 8, "fooo"),
        ("select * from read_csv('x')", 15, "'read_csv' is not allowed"),
        ("select 'x'::double from steps", 11, "Could not convert string 'x' to DOUBLE"),
    ],
)
def test_errors_are_one_line_with_the_column(store: Database, sql: str, column: int | None, words: str) -> None:
    error = denied(store, sql)
    assert error.column == column
    assert words in str(error)


@pytest.mark.parametrize("depth", [300, 600, 900, 5000])
def test_a_query_nested_too_deeply_is_one_line_and_ends_nobody(store: Database, depth: int) -> None:
    for begin, middle, end in (("abs(", "1", ")"), ("(select ", "1", ")"), ("[", "1", "]"), ("1 + (", "1", ")")):
        try:
            rows_of(store, f"select {begin * depth}{middle}{end * depth}")
        except QueryError as e:
            assert re.fullmatch(
                r"the query is nested too deeply: flatten it|Max expression depth limit .* exceeded\.", str(e)
            )
    assert rows_of(store, "select 1") == [(1,)]


def test_the_file_is_as_it_was(database: Database) -> None:
    database.close()
    before = hashlib.sha256(paths.database_file().read_bytes()).hexdigest()
    with Database(paths.database_file(), read_only=True) as reader:
        for sql in [*CASES["denied"], *MORE_DENIED]:
            denied(reader, sql.replace("{db}", str(reader.path)))
    assert hashlib.sha256(paths.database_file().read_bytes()).hexdigest() == before


# Looked at and left out: they wait, write to the log, keep a state, run a text, or are the engine's own tools.
LEFT_OUT = re.compile(
    r"__.*|(icu_)?collate_.*|icu_sort_key|json_(serialize_plan|deserialize_sql|copy_.*)|.*sleep.*|nextval|setval|currval"
    r"|write_log|setseed|finalize|combine|to_aggregate_state|stats|vector_type|create_sort_key|.*_byte_comparable"
    r"|remap_struct|index_key|parse_duckdb_log_message|txid_current|replace_type|cast_to_type|variant_(bytes|to|comp|norm).*"
    r"|inet_.*|hive_partition_component|invoke|st_.*|in_search_path|get_block_size|add_.+|(pg|has|map)_.*|.*_description"
    r"|format_pg_type|current_(role|connection_id|query_id|transaction_id)|session_user"
)


def test_every_function_of_this_duckdb_was_looked_at() -> None:
    """One that a later DuckDB brings is refused until somebody puts it here or there."""
    with duckdb.connect() as db:
        rows = db.execute(
            "select distinct lower(function_name) from duckdb_functions()"
            " where function_type in ('scalar', 'macro', 'aggregate')"
        ).fetchall()
    names = {name for (name,) in rows if name.isidentifier()}
    assert {name for name in names - functions.FUNCTIONS if not LEFT_OUT.fullmatch(name)} == set()


ASKED = """
select step in (1, 2), loss between 1 and 2, run like 'a%', run not ilike 'A', run similar to 'a', run ~ 'a' from steps
select extract(year from date '2026-01-01'), substring('abc' from 2 for 1), trim(both 'x' from 'xax'), 'a' || 'b', 5!
select timestamp '2026-01-01' at time zone 'UTC', current_date, date_trunc('hour', to_timestamp("time")) from steps
select [x * 2 for x in [1, 2] if x > 1], {'a': 1}.a, [1, 2, 3][1:2], map {'a': 1}['a'], list_reduce([1], lambda a, b: a)
select coalesce(1, null), try_cast('x' as int), 1 // 2, 2 ** 3, ~1, '{}'::json -> 'a', 1 is distinct from 2
select grouping(run), run, count(*) from steps group by rollup (run)
select distinct on (run) run, step from steps order by run, step limit 10 percent
select lag(loss) over w, sum(loss) over (order by step range 1 preceding) from steps window w as ()
select *, rank() over (order by loss) as r from steps qualify r = 1
select sum(loss) filter (where step > 1), percentile_cont(0.5) within group (order by loss) from steps
select a.step from steps a asof join steps b on a.step >= b.step semi join runs using (run)
select * from steps a, lateral (select max(loss) from steps b where b.run = a.run) using sample 10
from (pivot records on event in ('train') using count(*))
select columns('l.*') from (select * exclude (loss) replace (step + 1 as step) from steps)
with t as materialized (select 1) select exists (from t), 1 = any (from t), array(from t), (from t)
select unnest([1, 2]), unnest({'a': 1}), histogram(step), quantile_cont(loss, [0.1]), lttb(step, loss, 9) from steps
select position_acc[1], list_avg(position_acc), extra->'$.a', json_keys(extra), extra.a from records
select rowid, * from (values (1, 'a')) t(x, y), steps where (run, step) in (('a', 1)) order by all
from sqlite_master
from pg_catalog.pg_tables
select 'a' collate nocase = 'A', $$it's$$, 0x10, 1_000, U&'a' from runs order by run collate de
""".strip().split("\n")


@pytest.mark.parametrize("sql", ASKED)
def test_the_check_is_in_nobodys_way(sql: str) -> None:
    with duckdb.connect() as db:
        guard.check(db, sql, schema.names())

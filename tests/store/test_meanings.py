"""Every column that people may ask is explained, and nothing else is."""

import tomllib

import duckdb

from dflash_tui import paths
from dflash_tui.store import schema
from dflash_tui.store.meanings import meanings


def test_every_public_column_is_explained_and_no_other() -> None:
    told = tomllib.loads((paths.bundled("sql") / "columns.toml").read_text(encoding="utf-8"))
    public = set(schema.names()) - schema.INTERNAL
    assert set(told["tables"]) == public
    assert set(told) == {"tables", "like"} | (public - set(told["like"]))
    with duckdb.connect() as db:
        db.execute(schema.script())
        for table in public:
            columns = [name for name, *_ in db.execute(f"describe {table}").fetchall()]
            assert set(told[told["like"].get(table, table)]) == set(columns), table
    for table in public - set(told["like"]):
        for column, (unit, means) in told[table].items():
            assert unit and 3 < len(means) < 120 and means.endswith("."), (table, column)


def test_types_are_those_of_the_tables() -> None:
    found = {(m.table, m.column): m for m in meanings()}
    assert found["steps", "*"].type == "view" and found["events", "*"].type == "table"
    assert found["steps", "position_acc"].type == "DOUBLE[]"
    assert found["steps", "step_time_s"][2:4] == ("DOUBLE", "s")
    assert found["evals", "accept_hist"].type == "BIGINT[]"
    assert found["runs", "config"].type == "JSON"
    assert not any(table in schema.INTERNAL for table, _ in found)

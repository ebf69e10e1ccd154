"""What people may ask: the public tables and their columns, with types from sql/schema.sql, units and meanings from
sql/columns.toml. Asks no store: it tells the same before there is one."""

import tomllib
from typing import NamedTuple

from dflash_tui import paths
from dflash_tui.store import schema
from dflash_tui.store.answer import Answer
from dflash_tui.store.engine import duckdb


class Meaning(NamedTuple):
    """One column; or a whole table, whose column is "*" and whose type says whether it is one or a view."""

    table: str
    column: str
    type: str
    unit: str
    means: str


def meanings() -> list[Meaning]:
    """Every public table, each followed by its columns in their order."""
    told = tomllib.loads((paths.bundled("sql") / "columns.toml").read_text(encoding="utf-8"))
    with duckdb.connect() as db:
        db.execute(schema.script())
        rows = db.execute(
            "select table_name, column_name, data_type from duckdb_columns() order by column_index"
        ).fetchall()
        views = {name for (name,) in db.execute("select view_name from duckdb_views() where not internal").fetchall()}
    found = []
    for table, means in told["tables"].items():
        found.append(Meaning(table, "*", "view" if table in views else "table", "rows", means))
        units = told[told["like"].get(table, table)]
        found += [Meaning(table, name, kind, *units[name]) for owner, name, kind in rows if owner == table]
    return found


def answer_meanings() -> Answer:
    """`meanings`, as if it were the answer to a query."""
    columns = list(Meaning._fields)
    return Answer(columns, ["VARCHAR"] * len(columns), iter([[tuple(row) for row in meanings()]]), lambda: None)

"""Rows as they lie on disk: which cells are columns of their own, and which sit in a family.

A family is a list column that is null, or holds one struct of cells that are logged together. People see none of
this: the view `records` shows every cell as a column.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from dflash_tui.store.engine import duckdb

STEP_ROWS, OTHER_ROWS = TABLES = ("step_rows", "other_rows")
"""Train rows of rank 0, and all else that was logged; their columns are the same."""

_FAMILY = re.compile(r"STRUCT\((.*)\)\[\]")
_FIELD = re.compile(r'"?(\w+)"? ((?:DOUBLE|BIGINT|BOOLEAN|VARCHAR|JSON)(?:\[\])?)')


class Family(NamedTuple):
    """A list column and its cells with their types, in order."""

    name: str
    cells: dict[str, str]


class Logged(NamedTuple):
    """The types of all that a row of `records` has, and the families that some of it lies in."""

    kinds: dict[str, str]
    families: tuple[Family, ...]

    def targets(self, given: Collection[str]) -> list[tuple[str, str]]:
        """The columns on disk that hold the cells `given`, and what to fill them with where a row has these cells as
        columns of their own."""
        inside = {cell for family in self.families for cell in family.cells}
        found = [(_quoted(name), _quoted(name)) for name in given if name not in inside]
        for family in self.families:
            here = [_quoted(cell) for cell in family.cells if cell in given]
            if not here:
                continue
            # Cells that are not given become null when the struct is cast to the column's.
            cells = ", ".join(f"{cell} := {cell}" for cell in here)
            value = f"case when {' or '.join(f'{cell} is not null' for cell in here)} then [struct_pack({cells})] end"
            found.append((_quoted(family.name), value))
        return found


def read_logged(db: duckdb.DuckDBPyConnection) -> Logged:
    """As sql/schema.sql made it: the only place that lists the columns."""
    rows = db.execute(
        "select table_name, column_name, data_type from duckdb_columns() where database_name = current_database()"
        " and table_name in ('records', 'step_rows') order by column_index"
    ).fetchall()
    families = [
        Family(name, dict(_FIELD.findall(found[1])))
        for table, name, kind in rows
        if table == STEP_ROWS and (found := _FAMILY.fullmatch(kind))
    ]
    return Logged({name: kind for table, name, kind in rows if table == "records"}, tuple(families))


def _quoted(name: str) -> str:
    return f'"{name}"'

"""DuckDB's Python values -> the few kinds of cells that an `Answer` holds, the same with and without an owner."""

import datetime
import decimal
import math
import uuid
from typing import Any

from dflash_tui.store.answer import Row
from dflash_tui.text import number

# These types arrive as they should be; all others are looked at cell by cell.
_AS_IT_IS = frozenset(
    {"BIGINT", "BLOB", "BOOLEAN", "DOUBLE", "FLOAT", "HUGEINT", "INTEGER", "JSON", "NULL", '"NULL"', "SMALLINT"}
    | {"TINYINT", "UBIGINT", "UHUGEINT", "UINTEGER", "USMALLINT", "UTINYINT", "VARCHAR"}
)


def odd_columns(types: list[str]) -> list[int]:
    """The columns whose cells must pass through `plain_rows`."""
    return [at for at, kind in enumerate(types) if kind not in _AS_IT_IS]


def plain_rows(rows: list[Row], odd: list[int]) -> list[Row]:
    """`rows` with dates, decimals and the like of their `odd` columns made plain."""
    cells = [list(row) for row in rows]
    for row in cells:
        for at in odd:
            row[at] = _plain(row[at])
    return [tuple(row) for row in cells]


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta() | uuid.UUID():
            return str(value)
        case decimal.Decimal():
            return float(value) if len(value.as_tuple().digits) <= 15 else str(value)
        case dict():
            return {key if isinstance(key, str) else str(_plain(key)): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return str(value)


def strict(value: Any) -> Any:
    """A plain cell as strict JSON has it: non-finite numbers are "NaN", "Infinity" and "-Infinity", bytes are text."""
    match value:
        case float() if not math.isfinite(value):
            return number(value)
        case list():
            return [strict(item) for item in value]
        case dict():
            return {key: strict(item) for key, item in value.items()}
        case bytes():
            return value.decode(errors="replace")
        case _:
            return value

"""What Python's own types cannot hold: DuckDB writes it out as text before it leaves.

`infinity` and years beyond 9999 have no datetime, nanoseconds are cut off, an interval's months become 30 days, and a
time with a zone would need pytz.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dflash_tui.store.answer import Row
from dflash_tui.store.engine import duckdb

_TIMES = re.compile(r"\b(DATE|TIME\w*|INTERVAL)\b")
_HUGE = re.compile(r"\bU?HUGEINT\b")
_is_time = re.compile(r"DATE|TIME[\w ]*|INTERVAL").fullmatch


def columns_of(db: duckdb.DuckDBPyConnection, sql: str, bound: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and types of a SELECT's columns, without running it (1 ms); none for what cannot be described."""
    try:
        rows = db.execute(f"describe {sql}", bound).fetchall()
    except duckdb.Error:
        # It is run as it is, and its error will name the right place in its text.
        return []
    return [(row[0], row[1]) for row in rows]


def nested(kinds: list[str]) -> list[int]:
    """The columns of lists and structs of times: they come as JSON."""
    return [at for at, kind in enumerate(kinds) if _TIMES.search(kind) and not _is_time(kind)]


class Wrapped(NamedTuple):
    """A person's statement inside one of ours, `before` bytes behind its beginning."""

    text: str
    before: int


def with_times_as_text(sql: str, kinds: list[str]) -> Wrapped:
    """`sql`, its columns of `kinds` that hold times turned to text; as it is when there are none."""
    if not any(map(_TIMES.search, kinds)):
        return Wrapped(sql, 0)
    return _around(sql, "", list(map(_cell, _aliases(kinds), kinds)), "")


def to_parquet(sql: str, columns: list[tuple[str, str]], file: Path, limit: int | None) -> Wrapped:
    """What writes the answer to `sql` into `file`. Parquet has no integers of 128 bits: DuckDB would make them floats,
    here they are DECIMAL(38, 0), and one that is larger is an error."""
    cells = []
    for at, (name, kind) in zip(_aliases(columns), columns, strict=True):
        quoted = name.replace('"', '""')
        cast = f"::{_HUGE.sub('DECIMAL(38,0)', kind)}" if _HUGE.search(kind) else ""
        cells.append(f'{at}{cast} as "{quoted}"')
    place = str(file).replace("'", "''")
    cut = "" if limit is None else f" limit {limit}"
    return _around(sql, "copy (", cells, f"{cut}) to '{place}' (format parquet, use_tmp_file false)")


def beyond(sql: str, limit: int) -> Wrapped:
    """Whether `sql` has more rows than `limit`: one row, or none."""
    head = "select 1 from ("
    return Wrapped(f"{head}\n{_without_end(sql)}\n) limit 1 offset {limit}", len(head) + 1)


def _aliases(columns: Sequence[Any]) -> list[str]:
    return [f"c{n}" for n in range(len(columns))]


def _around(sql: str, begin: str, cells: list[str], end: str) -> Wrapped:
    head = f"{begin}select {', '.join(cells)} from ("  # noqa: S608 - it passed the guard
    return Wrapped(
        f"{head}\n{_without_end(sql)}\n) as answer({', '.join(_aliases(cells))}){end}", len(head.encode()) + 1
    )


def _cell(name: str, kind: str) -> str:
    if not _TIMES.search(kind):
        return name
    if not _is_time(kind):
        return f"to_json({name})::varchar"
    return f"regexp_replace({name}::varchar, ' ([0-9][0-9]:)', 'T\\1')"


def begun(sql: str) -> str:
    """A statement with blanks for the `;` before it, which end nothing: every other place in the text stays."""
    data = bytearray(sql.encode())
    for offset, kind in duckdb.tokenize(sql):
        if data[offset : offset + 1] == b";":
            data[offset] = ord(" ")
        elif kind != duckdb.token_type.comment:
            break
    return data.decode()


def _without_end(sql: str) -> str:
    """A statement without the `;` and the comments behind it."""
    data = sql.encode()
    end = len(data)
    for offset, kind in reversed(duckdb.tokenize(sql)):
        if kind != duckdb.token_type.comment and data[offset : offset + 1] != b";":
            break
        end = offset
    return data[:end].decode()


def from_json(rows: list[Row], at: list[int]) -> list[Row]:
    """`rows` with the JSON in their columns `at` read."""
    cells = [list(row) for row in rows]
    for row in cells:
        for n in at:
            row[n] = None if row[n] is None else json.loads(row[n])
    return [tuple(row) for row in cells]

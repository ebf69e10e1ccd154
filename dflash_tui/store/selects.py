"""The SELECTs of a panel or a check: cut apart, let through the guard, run. An error is one line, file:line first.

A person's own passes the same guard as a person's query: it runs where the database is open for writing. The bundled
ones are code of ours, and tests let them through it: looking at them anew would take 60 ms of each process.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from dflash_tui import paths
from dflash_tui.errors import QueryError
from dflash_tui.store.base import Row
from dflash_tui.store.cells import odd_columns, plain_rows
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import check, query_error
from dflash_tui.store.sql_header import SqlFile
from dflash_tui.text import visible

_COMMENT = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_CACHED_FILES = 256
# More than any screen holds: what we ask so is no export.
_MAX_ROWS = 20_000


class SelectError(Exception):
    """A file that does not run: file:line and why. Never leaves the store: it is shown in the file's place."""


class Statement(NamedTuple):
    """One SELECT. `text` has as many lines before it as in its file, so that DuckDB counts lines as the file does."""

    code: duckdb.Statement
    text: str
    line: int
    names: frozenset[str]


class Selected(NamedTuple):
    columns: list[str]
    rows: list[Row]


# Parsing and checking a file takes up to 10 ms; once parsed a statement runs on any cursor. By the text of the file.
_STATEMENTS: dict[str, tuple[Statement, ...]] = {}


def statements(
    cursor: duckdb.DuckDBPyConnection, asked: SqlFile, *, with_headline: bool = False
) -> tuple[Statement, ...]:
    """The file's one SELECT, or its headline's and its own; SelectError if it holds anything else."""
    if asked.sql not in _STATEMENTS:
        if len(_STATEMENTS) >= _CACHED_FILES:
            _STATEMENTS.clear()
        _STATEMENTS[asked.sql] = _read(cursor, asked)
    found = _STATEMENTS[asked.sql]
    if len(found) > (2 if with_headline else 1):
        few = "one SELECT, or two of which the first is the headline's" if with_headline else "one SELECT"
        raise SelectError(f"{place(asked, 1)}: holds {len(found)} statements; it may have {few}")
    return found


def select(
    cursor: duckdb.DuckDBPyConnection, asked: SqlFile, statement: Statement, params: Mapping[str, Any]
) -> Selected:
    """What a statement gives, with those of `params` that it names. duckdb.InterruptException passes through."""
    try:
        cursor.execute(statement.code, {name: params[name] for name in statement.names})
        described = cursor.description or []
        odd = odd_columns([str(column[1]) for column in described])
        rows = cursor.fetchmany(_MAX_ROWS + 1)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as e:
        raise _error(asked, statement.text, statement.line, query_error(e)) from e
    if len(rows) > _MAX_ROWS:
        raise SelectError(
            f"{place(asked, statement.line)}: gives more than {_MAX_ROWS:,} rows; group by step // $width"
        )
    return Selected([column[0] for column in described], plain_rows(rows, odd))


def place(asked: SqlFile, line: int) -> str:
    return f"{visible(str(asked.file))}:{line}"


def _read(cursor: duckdb.DuckDBPyConnection, asked: SqlFile) -> tuple[Statement, ...]:
    try:
        codes = cursor.extract_statements(asked.sql)
    except duckdb.Error as e:
        raise _error(asked, asked.sql, 1, query_error(e)) from e
    if not codes:
        raise SelectError(f"{place(asked, 1)}: holds no SELECT")
    is_ours = asked.file.parent.parent == paths.bundled("sql")
    tables = [] if is_ours else _names_of_tables(cursor)
    found, line = [], 1
    for code in codes:
        text = "\n" * (line - 1) + code.query
        comment = _COMMENT.match(text)
        begin = 1 + (comment[0].count("\n") if comment else 0)
        if not is_ours:
            try:
                check(cursor, text, tables)
            except QueryError as e:
                raise _error(asked, text, begin, e) from e
        [placed] = cursor.extract_statements(text)
        found.append(Statement(placed, text, begin, frozenset(placed.named_parameters)))
        line += code.query.count("\n")
    return tuple(found)


def _names_of_tables(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    found = cursor.execute(
        "select table_name from duckdb_tables() where database_name = current_database() union all"
        " select view_name from duckdb_views() where not internal and database_name = current_database()"
    )
    return [name for (name,) in found.fetchall()]


def _error(asked: SqlFile, text: str, line: int, error: QueryError) -> SelectError:
    """`line` is where the statement begins, for an error that names no place in its `text`."""
    if error.column is not None:
        line = 1 + text.count("\n", 0, error.column - 1)
    return SelectError(f"{place(asked, line)}: {error}")

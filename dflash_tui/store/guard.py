"""What a person's query may do: one SELECT over our tables, and nothing that writes, reads files or runs text.

Each layer alone can be passed (a SELECT may hold `delete ... returning`, a read-only transaction may COPY to a file),
so all of them stand: this check of the parsed statement, the READ ONLY transaction that queries.py opens, and the
settings that the database was opened with. The functions matter most: one that reads a file, even by a wrong name or
in vain, can read the owner's own database file, and closing that drops the lock that keeps other writers out.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from dflash_tui.errors import QueryError
from dflash_tui.store import schema
from dflash_tui.store.engine import duckdb
from dflash_tui.store.functions import FUNCTIONS, TABLE_FUNCTIONS
from dflash_tui.text import did_you_mean, nearest, visible

# What the database is opened with. No more can be changed once it is open.
LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "errors_as_json": "true",
    "enable_external_file_cache": "false",
    "memory_limit": "2GB",
    "lock_configuration": "true",
}

_METADATA = (["information_schema"], ["pg_catalog"])
_CATALOG_VIEWS = frozenset(
    {"duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_schemas", "duckdb_tables", "duckdb_types"}
    | {"duckdb_views", "sqlite_master", "pragma_database_list"}
)
# Everything in a parsed SELECT that is no expression. Writing CTEs are statements of other kinds.
_SHAPES = frozenset(
    {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
    | {"BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION"}
    | {"DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"}
    | {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
)
_PLAIN_NAME = re.compile(r"\w[\w $-]*")
_EXPLAIN = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*explain\b", re.IGNORECASE | re.DOTALL)


class Checked(NamedTuple):
    """A statement that may run, and the names of the parameters it asks for."""

    sql: str
    parameters: frozenset[str]


def check(db: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str]) -> Checked:
    """`sql` if it may run over `tables`; else QueryError says in one line why not, and in which column (from 1)."""
    try:
        return _checked(db, sql, tables)
    except QueryError as e:
        raise placed(e, sql) from e.__cause__


def _checked(db: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str]) -> Checked:
    try:
        statements = db.extract_statements(sql)
        kinds = [statement.type for statement in statements]
    except duckdb.Error as e:
        raise query_error(e) from e
    except ValueError as e:
        # CONNECT and UPDATE EXTENSIONS have types that the Python client does not know.
        raise QueryError("only SELECT is allowed in a query") from e
    if len(statements) != 1:
        what = "is no statement" if not statements else f"are {len(statements)} statements"
        raise QueryError(f"a query is one SELECT; here {what}")
    [kind] = kinds
    offset = 0
    if kind == duckdb.StatementType.EXPLAIN:
        found = _EXPLAIN.match(sql)
        offset = found.end() if found else 0
    elif kind != duckdb.StatementType.SELECT:
        raise QueryError(f"only SELECT is allowed in a query, not {_word(kind)}")
    _check_tree(_parse(db, sql[offset:], is_explain=offset > 0), tables, len(sql[:offset].encode()))
    return Checked(sql, frozenset(statements[0].named_parameters))


def _word(kind: duckdb.StatementType) -> str:
    return str(kind).rpartition(".")[2].replace("_", " ")


def _parse(db: duckdb.DuckDBPyConnection, sql: str, *, is_explain: bool) -> Any:
    [(text,)] = db.execute("select json_serialize_sql($1)", [sql]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError as e:
        raise QueryError("the query is nested too deeply: flatten it") from e
    if tree["error"]:
        if is_explain:
            raise QueryError("only EXPLAIN of a SELECT is allowed, without ANALYZE or options")
        raise QueryError("only a plain SELECT is allowed in a query")
    return tree["statements"]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _check_tree(tree: Any, tables: Collection[str], offset: int) -> None:
    nodes = list(_nodes(tree))
    known = {name.lower() for name in tables}
    for node in nodes:
        for cte in node.get("cte_map", {}).get("map", []):
            known.add(_cte_name(cte["key"]))
    called_in_from = {id(node["function"]) for node in nodes if node.get("type") == "TABLE_FUNCTION"}
    for node in nodes:
        kind = node.get("type")
        if isinstance(kind, str) and "class" not in node and kind not in _SHAPES:
            raise QueryError(f"only SELECT is allowed in a query, not {kind.partition('_')[0]}")
        if kind == "BASE_TABLE":
            _check_table(node, known, offset)
        elif kind == "SHOW_REF":
            _check_shown(node, known)
        elif kind == "TABLE_FUNCTION":
            _check_table_function(node, offset)
        elif "function_name" in node and id(node) not in called_in_from:
            _check_function(node, offset)


def _cte_name(name: str) -> str:
    # A CTE's name counts as a table everywhere in the query, so it must not be one that also names a file.
    if not _PLAIN_NAME.fullmatch(name):
        raise QueryError(f"{name!r} cannot name a CTE here: use letters, digits and '_'")
    return name.lower()


def _column(node: dict[str, Any], offset: int) -> int | None:
    place = node.get("query_location", 2**64 - 1)
    return place + offset + 1 if place < 2**63 else None


def _check_table(node: dict[str, Any], known: set[str], offset: int) -> None:
    *space, name = node["qualified_name"]["path"]
    space = [part.lower() for part in space]
    if space in _METADATA or (space in ([], ["main"]) and name.lower() in known | _CATALOG_VIEWS):
        return
    where = _column(node, offset)
    if not _PLAIN_NAME.fullmatch(name) or space not in ([], ["main"]):
        raise QueryError(f"{name!r} is no table of the store, and a query reads no files", where)
    raise QueryError(f"there is no table {name!r}; {did_you_mean(name, known - schema.INTERNAL)}", where)


def _check_shown(node: dict[str, Any], known: set[str]) -> None:
    # SHOW TABLES and its like come as a quoted internal name; a real one may only be a table of ours.
    name = str(node.get("table_name") or "").strip('"').lower()
    if name and name not in known and not re.fullmatch(r"_*[a-z]+(_[a-z]+)*", name):
        raise QueryError(f"{name!r} is no table of the store")


def _check_table_function(node: dict[str, Any], offset: int) -> None:
    name = node["function"]["function_name"]
    if name.lower() not in TABLE_FUNCTIONS:
        raise QueryError(f"the table function {name!r} is not allowed in a query", _column(node, offset))


def _check_function(node: dict[str, Any], offset: int) -> None:
    name = str(node["function_name"])
    # Operators are functions too, with signs for a name.
    if re.fullmatch(r"\w+", name) and name.lower() not in FUNCTIONS:
        hint = did_you_mean(name.lower(), FUNCTIONS)
        raise QueryError(f"a query has no function {name!r}; {hint}", _column(node, offset))


_NO_COLUMN = re.compile(r'does not have a column named "(.*?)"|Column "(.*?)" in \w+ list not found')


def _no_column(name: str, candidates: list[str]) -> str:
    # DuckDB names none of a view's, and of a table's the five that it finds near.
    near = nearest(name, candidates) or nearest(name, schema.public_columns())
    return f"there is no column {name!r} here; " + (f"did you mean {near!r}?" if near else "see `query --schema`")


# What to do about a damaged file; an error about one ends so.
REBUILD = ": `dflash-tui doctor --rebuild` makes the database anew from the mirrors"


def query_error(error: duckdb.Error) -> QueryError:
    """DuckDB's error as one line, with the nearest name and the place (in bytes, from 1) where it tells them."""
    text = str(error)
    begin = text.find("{")
    try:
        told = json.loads(text[begin:]) if begin >= 0 else {}
    except ValueError:
        told = {}
    lines = str(told.get("exception_message", text)).splitlines()
    message = " ".join(line.strip() for line in lines if line.strip())
    if told.get("error_subtype") == "COLUMN_NOT_FOUND" and "candidates" in told:
        message = _no_column(str(told.get("name")), str(told["candidates"]).split(","))
    elif named := _NO_COLUMN.search(message):
        candidates = re.findall('"(.*?)"', message.partition("Candidate bindings:")[2])
        message = _no_column(named[1] or named[2], candidates)
    # A person cannot follow DuckDB's advice to SET something.
    message = message.partition(" Candidate functions:")[0].partition(' Use "SET ')[0]
    if told.get("exception_type") in ("Data Corruption", "FATAL"):
        message += REBUILD
    place = told.get("position")
    column = int(place) + 1 if isinstance(place, str) and place.isdecimal() else None
    return QueryError(visible(message) or "the query failed", column)


def placed(error: QueryError, sql: str, before: int = 0) -> QueryError:
    """`error`, its place as a column of `sql` in characters. What ran had `before` bytes of text in front of `sql`."""
    if error.column is not None:
        data, offset = sql.encode(), error.column - 1 - before
        error.column = len(data[:offset].decode(errors="ignore")) + 1 if 0 <= offset <= len(data) else None
    return error

"""A window laid over the rows of a run: how many rows, which steps, and into how wide buckets they are cut."""

from typing import NamedTuple

from dflash_tui.runs import Window
from dflash_tui.store.base import ResolvedWindow
from dflash_tui.store.engine import duckdb

_WHOLE = "select count(*), min(step), max(step) from core where run = $run"
_BETWEEN = "select count(*), min(step), max(step) from core where run = $run and step between $first and $last"
_SINCE = """
select count(*), min(step), max(step) from core
where run = $run and generation = $generation and line_no >= $line_no"""
_LAST_LINE = """
select generation, max(line_no) from core where run = $run and step between $first and $last
group by generation order by generation desc limit 1"""
_NEWEST = """
select count(*), min(step), max(step) from (
  select step from core
  where run = $run and (step between $first and $last or $first is null)
    and ($generation is null or generation = $generation and line_no >= $line_no)
  order by generation desc, line_no desc limit $n)
"""

# How many rows `$recent` is about, unless another number is asked for.
NUM_RECENT = 3000


class Rows(NamedTuple):
    """Rows of `steps`: how many, and their lowest and highest step."""

    n: int
    first: int | None
    last: int | None


def window_of(own: Window | None, asked: Window) -> tuple[Window, bool]:
    """The window that a panel with one of its own takes where `asked` is asked for, and whether it is everything: then
    its SELECTs get no limits."""
    takes_asked = own is None or asked.kind == "range" or (own.kind, asked.kind) == ("last", "last")
    window = asked if takes_asked or own is None else own
    return window, own is not None and own.kind == window.kind == "run"


def resolve_window(cursor: duckdb.DuckDBPyConnection, run_id: str, window: Window) -> ResolvedWindow:
    """`window` laid over the rows of a run: how many there are in it, and its first and last step.

    Rows without a step count in the whole run and in the last N. A range without rows keeps the limits asked for.
    """
    if window.n is not None:
        ends = cursor.execute("select generation, line_no from cursors where run = $run", {"run": run_id}).fetchall()
        n, first, last = newest(cursor, run_id, Rows(window.n, None, None), ends[0] if ends else (None, 0))
    elif window.kind == "range":
        bounds = {"first": window.first, "last": window.last}
        [(n, first, last)] = cursor.execute(_BETWEEN, {"run": run_id, **bounds}).fetchall()
    else:
        [(n, first, last)] = cursor.execute(_WHOLE, {"run": run_id}).fetchall()
    if n == 0:
        first, last = window.first, window.last
    return ResolvedWindow(window.kind, n, first, last)


def newest(cursor: duckdb.DuckDBPyConnection, run_id: str, asked: Rows, end: tuple[int | None, int]) -> Rows:
    """The newest `asked.n` rows from step `asked.first` to `asked.last`, both included; of all when these are null.

    `end` is the generation and the line where the log ends so far. Mostly they stand among the last 2n lines before it,
    or before the last line with such a step: looking there first takes 2 ms of a million rows, not 30.
    """

    def look(generation: int | None, line_no: int) -> Rows:
        near = {"generation": generation, "line_no": line_no - 2 * asked.n}
        [found] = cursor.execute(_NEWEST, {"run": run_id, **asked._asdict(), **near}).fetchall()
        return Rows(*found)

    found = look(*end)
    if found.n < asked.n and asked.first is not None:
        limits = {"run": run_id, "first": asked.first, "last": asked.last}
        for place in cursor.execute(_LAST_LINE, limits).fetchall():
            found = look(*place)
    return found if found.n == asked.n else look(None, 0)


def rows_since(cursor: duckdb.DuckDBPyConnection, run_id: str, generation: int | None, line_no: int) -> Rows:
    """The rows from line `line_no` of a generation on."""
    params = {"run": run_id, "generation": generation, "line_no": line_no}
    [found] = cursor.execute(_SINCE, params).fetchall()
    return Rows(*found)


def bucket_width(rows: ResolvedWindow, buckets: int) -> int:
    """The narrowest of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22... steps that needs `buckets` buckets at most."""
    first, last = rows.first, rows.last
    width = 1
    while first is not None and last is not None and last // width - first // width >= buckets:
        width = max(width + 1, width * 5 // 4)
    return width

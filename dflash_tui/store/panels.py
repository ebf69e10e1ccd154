"""Panels run over a run's rows: the window laid over them, the parameters bound, the answer or why there is none.

A panel's file (panel_files.py) has one SELECT, or two of which the first is the headline's: one cell of text. They may
name these parameters and no others; each statement gets the ones that it names:

    $run                     the run_id
    $first, $last            first and last step of the window; null for `window: run`, unless A..B is asked for
    $buckets                 how many rows a chart has room for
    $width                   steps a bucket, so that `step // $width` makes $buckets buckets at most. Their limits stay
                             where they are while a run grows, so a live chart moves only at its end
    $last_n                  N of --last N, else null: write coalesce($last_n, 2000)
    $recent                  none of the newest 3,000 (or N) rows with a step in the window has a lower one: it keeps
                             `order by ... limit` from sorting a million rows
    $a_first ... $b_last     first and last steps of the two stretches that are compared; null: the panel's own
    $length_edges            [1500, 3000], the limits of the length buckets (config.toml)

A column named `nonfinite` counts the values that a row leaves out; the headline then ends with their sum.

Nothing here draws, formats for a person, or writes: all panels of a report see one read-only snapshot.
"""

import math
from collections.abc import Collection
from functools import cached_property
from typing import Any, Literal

import duckdb

from dflash_tui.errors import UsageError
from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult, ResolvedWindow
from dflash_tui.store.missing import Scope, never_logged, no_rows, nothing_matched
from dflash_tui.store.panel_files import Panel, load_panels
from dflash_tui.store.panel_sql import PanelError, Selected, Statement, place, select, statements
from dflash_tui.text import did_you_mean, number

_NUM_RECENT = 3000

_WHOLE = "select count(*), min(step), max(step) from steps where run = $run"
_BETWEEN = "select count(*), min(step), max(step) from steps where run = $run and step between $first and $last"
_NEWEST = """
select count(*), min(step), max(step) from (
  select step from steps
  where run = $run and coalesce(step between $first and $last, $first is null)
    and ($generation is null or generation = $generation and line_no >= $line_no)
  order by generation desc, line_no desc limit $n)
"""


def resolve_window(cursor: duckdb.DuckDBPyConnection, run_id: str, window: Window) -> ResolvedWindow:
    """`window` laid over the rows of a run: how many there are in it, and its first and last step.

    Rows without a step count in the whole run and in the last N. A range without rows keeps the limits asked for.
    """
    if window.n is not None:
        n, first, last = _newest(cursor, run_id, None, None, window.n)
    elif window.kind == "range":
        bounds = {"first": window.first, "last": window.last}
        [(n, first, last)] = cursor.execute(_BETWEEN, {"run": run_id, **bounds}).fetchall()
    else:
        [(n, first, last)] = cursor.execute(_WHOLE, {"run": run_id}).fetchall()
    if n == 0:
        first, last = window.first, window.last
    return ResolvedWindow(window.kind, n, first, last)


def _newest(
    cursor: duckdb.DuckDBPyConnection, run_id: str, first: int | None, last: int | None, n: int
) -> tuple[int, int | None, int | None]:
    """How many the newest `n` rows from step `first` to `last` are, and their lowest and highest step.

    Mostly they stand among the last 2n lines of the log: looking there first takes 2 ms of a million rows, not 30.
    """
    params = {"run": run_id, "first": first, "last": last, "n": n}
    ends = cursor.execute("select generation, line_no from cursors where run = $run", {"run": run_id}).fetchall()
    for generation, line_no in [*ends, (None, None)]:
        near = {"generation": generation, "line_no": None if line_no is None else line_no - 2 * n}
        [found] = cursor.execute(_NEWEST, {**params, **near}).fetchall()
        if found[0] == n:
            break
    return found[0], found[1], found[2]


def run_panels(
    cursor: duckdb.DuckDBPyConnection,
    run_id: str,
    names: Collection[str] | None,
    window: Window,
    buckets: int,
    length_edges: tuple[float, float],
    stretches: tuple[Window, Window] | None = None,
) -> list[PanelResult]:
    """The panels called `names` (None: all of them, in their order) over a run; `buckets` bounds a chart's rows.

    `stretches` are the two ranges of steps that early-against-late figures compare. A panel that cannot be read or run
    is `failed` and the others go on. UsageError for a name that no panel has; duckdb.InterruptException passes through.
    """
    panels = load_panels()
    known = [panel.name for panel in panels]
    for name in names or ():
        if name not in known:
            raise UsageError(f"no panel named {name!r}: {did_you_mean(name, known)}")
    report = _Report(cursor, run_id, window, max(1, buckets), length_edges, stretches)
    cursor.execute("begin transaction read only")
    try:
        return [report.answer(panel) for panel in panels if names is None or panel.name in names]
    finally:
        cursor.execute("rollback")


class _Report:
    """One run, one window, one snapshot: what its panels have in common is asked once, and only if one needs it."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        run_id: str,
        window: Window,
        buckets: int,
        length_edges: tuple[float, float],
        stretches: tuple[Window, Window] | None,
    ) -> None:
        self._cursor = cursor
        self._run_id = run_id
        self._window = window
        self._buckets = buckets
        self._scopes: dict[tuple[Window, bool], Scope] = {}
        self._recents: dict[tuple[int | None, int | None], int | None] = {}
        a, b = stretches or (None, None)
        self._fixed: dict[str, Any] = {
            "run": run_id,
            "buckets": buckets,
            "last_n": window.n,
            "length_edges": list(length_edges),
            "a_first": a and a.first,
            "a_last": a and a.last,
            "b_first": b and b.first,
            "b_last": b and b.last,
        }

    def answer(self, panel: Panel) -> PanelResult:
        if panel.broken:
            return _result(panel, "failed", why=panel.broken)
        try:
            return self._run(panel)
        except PanelError as e:
            # A statement that fails takes its transaction along.
            self._cursor.execute("rollback")
            self._cursor.execute("begin transaction read only")
            return _result(panel, "failed", why=str(e))

    def _run(self, panel: Panel) -> PanelResult:
        scope = self._scope(panel)
        why = never_logged(panel, self._keys, self._whole) or no_rows(panel, scope, self._whole)
        if why:
            return _result(panel, "empty", why=why)
        *headlines, body = statements(self._cursor, panel)
        headline = _headline(panel, headlines[0], self._select(panel, headlines[0], scope)) if headlines else None
        found = self._select(panel, body, scope)
        _check_columns(panel, body, found.columns)
        if not _has_something(panel, found):
            return _result(panel, "empty", why=nothing_matched(self._cursor, self._run_id, panel, scope))
        return _result(panel, "rows", headline=_with_nonfinite(headline, found), found=found)

    @cached_property
    def _whole(self) -> ResolvedWindow:
        return resolve_window(self._cursor, self._run_id, Window())

    @cached_property
    def _keys(self) -> frozenset[str]:
        found = self._cursor.execute("select distinct key from keys where run = $run", {"run": self._run_id})
        return frozenset(key for (key,) in found.fetchall())

    def _scope(self, panel: Panel) -> Scope:
        asked, own = self._window, panel.window
        takes_asked = own is None or asked.kind == "range" or (own.kind, asked.kind) == ("last", "last")
        window = asked if takes_asked or own is None else own
        is_everything = own is not None and own.kind == window.kind == "run"
        key = (window, is_everything)
        if key not in self._scopes:
            rows = self._whole if window.kind == "run" else resolve_window(self._cursor, self._run_id, window)
            self._scopes[key] = Scope(window, rows, is_everything)
        return self._scopes[key]

    def _select(self, panel: Panel, statement: Statement, scope: Scope) -> Selected:
        params = {**self._fixed, "first": scope.first, "last": scope.last, "width": _width(scope, self._buckets)}
        if "recent" in statement.names:
            params["recent"] = self._recent(scope)
        for name in statement.names:
            if name not in params:
                known = did_you_mean(f"${name}", [f"${known}" for known in (*params, "recent")])
                raise PanelError(f"{place(panel, statement.line)}: unknown parameter ${name}: {known}")
        return select(self._cursor, panel, statement, params)

    def _recent(self, scope: Scope) -> int | None:
        # Of rows with a step: of those without, no bound on steps leaves any out.
        first, last = scope.rows.first, scope.rows.last
        if (first, last) not in self._recents:
            found = _newest(self._cursor, self._run_id, first, last, self._window.n or _NUM_RECENT)
            self._recents[first, last] = found[1]
        return self._recents[first, last]


def _width(scope: Scope, buckets: int) -> int:
    """The narrowest of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22... steps that needs `buckets` buckets at most."""
    first, last = scope.rows.first, scope.rows.last
    width = 1
    while first is not None and last is not None and last // width - first // width >= buckets:
        width = max(width + 1, width * 5 // 4)
    return width


def _headline(panel: Panel, statement: Statement, found: Selected) -> str | None:
    if len(found.columns) != 1 or len(found.rows) > 1:
        size = f"{len(found.rows)} rows of {len(found.columns)} columns"
        raise PanelError(f"{place(panel, statement.line)}: a headline is one cell, its SELECT gives {size}")
    value = found.rows[0][0] if found.rows else None
    return None if value is None else str(_finite(value))


def _with_nonfinite(headline: str | None, found: Selected) -> str | None:
    if "nonfinite" not in found.columns:
        return headline
    at = found.columns.index("nonfinite")
    num = sum(row[at] for row in found.rows if isinstance(row[at], int))
    return " · ".join(filter(None, (headline, f"{num:,} non-finite" if num else None))) or None


def _check_columns(panel: Panel, statement: Statement, columns: list[str]) -> None:
    if panel.units is not None and len(panel.units) != len(columns):
        raise PanelError(
            f"{place(panel, statement.line)}: `units` has {len(panel.units)} entries, the SELECT gives"
            f" {len(columns)} columns: {', '.join(columns)}"
        )
    for option, column in panel.columns():
        if column not in columns:
            raise PanelError(
                f"{place(panel, statement.line)}: the chart's {option}={column} is no column of the SELECT:"
                f" {did_you_mean(column, columns)}"
            )


def _has_something(panel: Panel, found: Selected) -> bool:
    """Whether a table has a row, and a chart a point."""
    values = [found.columns.index(column) for option, column in panel.columns() if option in ("y", "y2")]
    return any(not values or any(row[i] is not None for i in values) for row in found.rows)


def _result(
    panel: Panel,
    state: Literal["rows", "empty", "failed"],
    *,
    why: str | None = None,
    headline: str | None = None,
    found: Selected | None = None,
) -> PanelResult:
    columns, rows = found or ((), ())
    return PanelResult(
        name=panel.name,
        title=panel.title,
        chart=panel.chart,
        state=state,
        why=why,
        headline=headline,
        columns=list(columns),
        units=list(panel.units or [""] * len(columns)) if columns else [],
        rows=[[_finite(value) for value in row] for row in rows],
        unit=panel.unit,
        scale=panel.scale,
        better=panel.better,
        order=panel.order,
        help=panel.help,
        axes=panel.axes,
    )


def _finite(value: Any) -> Any:
    """A cell as strict JSON holds it: non-finite numbers are "NaN", "Infinity" and "-Infinity", bytes are text."""
    match value:
        case float() if not math.isfinite(value):
            return number(value)
        case list():
            return [_finite(item) for item in value]
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case bytes():
            return value.decode(errors="replace")
        case _:
            return value

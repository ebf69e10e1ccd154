"""One report on one run: what its panels have in common, asked once and only if one needs it, and the answer of each.

Several threads may ask one report for panels, each through a `View` of its own. What is kept from one report to the
next lies in panel_cache.py; here stands when it may be used, and how the rows of new steps are put to it.
"""

import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from dflash_tui.runs import Stretches, Window
from dflash_tui.store.base import PanelResult, ResolvedWindow, Row
from dflash_tui.store.engine import duckdb
from dflash_tui.store.missing import Scope, Table, never_logged, no_rows, nothing_matched
from dflash_tui.store.panel_cache import Answers, Buckets, Kept, RunState, Whole, read_state
from dflash_tui.store.panel_files import Panel
from dflash_tui.store.panel_result import check_columns, has_something, headline_of, panel_result, with_nonfinite
from dflash_tui.store.panel_windows import NUM_RECENT, Rows, bucket_width, newest, resolve_window, rows_since, window_of
from dflash_tui.store.selects import Selected, SelectError, Statement, place, select, statements
from dflash_tui.text import did_you_mean

T = TypeVar("T")

# What the SELECT of closed buckets may name: nothing that moves while a run grows, but for the window's end.
_OF_BUCKETS = frozenset({"run", "first", "last", "width", "buckets", "length_edges"})


class Question(NamedTuple):
    """What a report is asked, but for the names of its panels."""

    run_id: str
    window: Window
    buckets: int
    length_edges: tuple[float, float]
    stretches: Stretches | None


class View:
    """A cursor in a read-only transaction, until `end`, and how the run stands in it."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, run_id: str) -> None:
        self.cursor = cursor
        self._run_id = run_id
        self.begin()

    def begin(self) -> None:
        self.cursor.execute("begin transaction read only")
        try:
            self.state: RunState = read_state(self.cursor, self._run_id)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        self.cursor.execute("rollback")


class Report:
    """The answers to one question. All views that are used for it show the run in the state of `view`."""

    def __init__(self, question: Question, view: View, answers: Answers, num_forgets: int) -> None:
        self._question = question
        self.run_id = question.run_id
        self._state = view.state
        self._answers = answers
        self._num_forgets = num_forgets
        self._known: dict[Hashable, Any] = {}
        self._turn = threading.RLock()
        a, b = question.stretches or (None, None)
        self._fixed: dict[str, Any] = {
            "run": self.run_id,
            "buckets": question.buckets,
            "last_n": question.window.n,
            "length_edges": list(question.length_edges),
            "a_first": a and a.first,
            "a_last": a and a.last,
            "b_first": b and b.first,
            "b_last": b and b.last,
        }

    def kept(self, panel: Panel) -> PanelResult | None:
        """The panel's answer to the same question when the run stood as it does now, if it is kept."""
        entry = self._answers.get(Kept, self.run_id, panel.name, panel.sql, self._question) if panel.cache else None
        return entry.result if entry and entry.state == self._state else None

    def answer(self, panel: Panel, view: View) -> PanelResult:
        """`panel` answered through `view`, which is in a transaction before and after."""
        if panel.broken:
            return panel_result(panel, "failed", why=panel.broken)
        try:
            result = self._run(panel, view)
        except SelectError as e:
            # A statement that fails takes its transaction along.
            view.end()
            view.begin()
            return panel_result(panel, "failed", why=str(e))
        if panel.cache:
            self._keep(view, Kept(view.state, result), panel.name, panel.sql, self._question)
        return result

    def _run(self, panel: Panel, view: View) -> PanelResult:
        scope = self._scope(panel, view)
        why = never_logged(panel, self._state.keys, lambda table: self._has_rows(table, view))
        why = why or no_rows(panel, scope, lambda: self._whole(view))
        if why:
            return panel_result(panel, "empty", why=why)
        *above, body = statements(view.cursor, panel, with_headline=True)
        headline = headline_of(panel, above[0], self._select(panel, above[0], scope, view)) if above else None
        found = (self._select_buckets if panel.cache == "buckets" else self._select)(panel, body, scope, view)
        check_columns(panel, body, found.columns)
        if not has_something(panel, found):
            return panel_result(panel, "empty", why=nothing_matched(view.cursor, self.run_id, panel, scope))
        return panel_result(panel, "rows", headline=with_nonfinite(headline, found), found=found)

    def _once(self, key: Hashable, ask: Callable[[], T]) -> T:
        with self._turn:
            if key not in self._known:
                self._known[key] = ask()
            found: T = self._known[key]
            return found

    def _has_rows(self, table: Table, view: View) -> bool:
        sql = f"select 1 from {table} where run = $run limit 1"  # noqa: S608 - one of two names of ours
        return self._once(table, lambda: bool(view.cursor.execute(sql, {"run": self.run_id}).fetchall()))

    def _since(self, line_no: int, view: View) -> Rows:
        asked = (view.cursor, self.run_id, self._state.generation, line_no)
        return self._once(("since", line_no), lambda: rows_since(*asked))

    def _whole(self, view: View) -> ResolvedWindow:
        def ask() -> ResolvedWindow:
            kept = self._answers.get(Whole, self.run_id)
            if kept and view.state.has_grown_from(kept.state):
                new, old = self._since(kept.state.line_no, view), kept.rows
                steps = [step for step in (old.first, old.last, new.first, new.last) if step is not None]
                ends = (min(steps), max(steps)) if steps else (None, None)
                rows = ResolvedWindow("run", old.n + new.n, *ends)
            else:
                rows = resolve_window(view.cursor, self.run_id, Window())
            self._keep(view, Whole(view.state, rows))
            return rows

        return self._once("whole", ask)

    def _keep(self, view: View, entry: Whole | Buckets | Kept, *question: Hashable) -> None:
        # A view that had to begin anew may show more rows than what was asked of the report before.
        if view.state == self._state:
            self._answers.put(entry, self._num_forgets, self.run_id, *question)

    def _scope(self, panel: Panel, view: View) -> Scope:
        window, is_everything = window_of(panel.window, self._question.window)

        def rows() -> ResolvedWindow:
            if window.kind == "run":
                return self._whole(view)
            return self._once(window, lambda: resolve_window(view.cursor, self.run_id, window))

        return Scope(window, rows, is_everything)

    def _select(self, panel: Panel, statement: Statement, scope: Scope, view: View) -> Selected:
        return select(view.cursor, panel, statement, self._params(panel, statement, scope, view))

    def _params(self, panel: Panel, statement: Statement, scope: Scope, view: View) -> dict[str, Any]:
        params = {**self._fixed, "first": scope.first, "last": scope.last}
        if "width" in statement.names:
            params["width"] = bucket_width(scope.rows(), self._question.buckets)
        if "recent" in statement.names:
            params["recent"] = self._recent(scope.rows(), view)
        for name in statement.names:
            if name not in params:
                known = did_you_mean(f"${name}", [f"${known}" for known in (*params, "width", "recent")])
                raise SelectError(f"{place(panel, statement.line)}: unknown parameter ${name}: {known}")
        return params

    def _recent(self, rows: ResolvedWindow, view: View) -> int | None:
        # Of rows with a step: of those without, no bound on steps leaves any out.
        asked = Rows(self._question.window.n or NUM_RECENT, rows.first, rows.last)
        end = (self._state.generation, self._state.line_no)
        return self._once(asked, lambda: newest(view.cursor, self.run_id, asked, end)).first

    def _select_buckets(self, panel: Panel, statement: Statement, scope: Scope, view: View) -> Selected:
        """As `_select`: the rows of closed buckets are those of last time, only the others are asked for."""
        if moving := sorted(statement.names - _OF_BUCKETS):
            raise SelectError(
                f"{place(panel, statement.line)}: `cache: buckets` goes without ${moving[0]}, it moves as a run grows"
            )
        params = self._params(panel, statement, scope, view)
        first, last, width = scope.first, scope.last, params.get("width", 1)
        if first is None or last is None:
            return select(view.cursor, panel, statement, params)
        question = (panel.sql, width, self._question)
        kept = self._answers.get(Buckets, self.run_id, *question)
        closed, begin = list[Row](), first
        if kept and kept.first == first and view.state.has_grown_from(kept.state):
            limit = self._closed_until(kept, last, width, view)
            if limit > max(first, 0):
                closed, begin = kept.before(limit), limit
        if kept and begin > last:
            found = Selected(kept.columns, closed)
        else:
            found = select(view.cursor, panel, statement, params | {"first": begin})
            if "step" not in found.columns:
                raise SelectError(
                    f"{place(panel, statement.line)}: `cache: buckets` needs a column `step` that is in a row's bucket"
                )
            found = Selected(found.columns, [*closed, *found.rows])
        self._keep(view, Buckets(view.state, first, last, *found), *question)
        return found

    def _closed_until(self, kept: Buckets, last: int, width: int, view: View) -> int:
        """The lowest step of a bucket that may have other rows now than it had then."""
        new = self._since(kept.state.line_no, view).first
        changed = min(step for step in (kept.last + 1, last + 1, new) if step is not None)
        return changed // width * width

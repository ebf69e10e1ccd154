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

Nothing here draws, formats for a person, or writes: all panels of a report see a run in one and the same state.
"""

import os
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait

from dflash_tui.errors import UsageError
from dflash_tui.runs import Stretches, Window
from dflash_tui.store.base import PanelResult
from dflash_tui.store.engine import duckdb
from dflash_tui.store.panel_cache import Answers
from dflash_tui.store.panel_files import Panel, load_panels
from dflash_tui.store.panel_report import Question, Report, View
from dflash_tui.text import did_you_mean

# To plan a panel's SELECTs takes longer than to run them until a run has some 100,000 steps, and one thread does it.
_MAX_THREADS = min(4, os.cpu_count() or 1)
_INTERRUPT_EVERY_S = 0.05


def run_panels(
    cursor: duckdb.DuckDBPyConnection,
    run_id: str,
    names: Collection[str] | None,
    window: Window,
    buckets: int,
    length_edges: tuple[float, float],
    stretches: Stretches | None = None,
    answers: Answers | None = None,
) -> list[PanelResult]:
    """The panels called `names` (None: all of them, in their order) over a run; `buckets` bounds a chart's rows.

    `stretches` are the two ranges of steps that early-against-late figures compare; `answers` what is kept from one
    report to the next. A panel that cannot be read or run is `failed` and the others go on. UsageError for a name that
    no panel has; duckdb.InterruptException passes through.
    """
    chosen = _chosen(names)
    answers = answers or Answers()
    num_forgets = answers.num_forgets
    view = View(cursor, run_id)
    try:
        report = Report(Question(run_id, window, max(1, buckets), length_edges, stretches), view, answers, num_forgets)
        found = {panel.name: kept for panel in chosen if (kept := report.kept(panel))}
        if missing := [panel for panel in chosen if panel.name not in found]:
            found |= _answer_all(report, view, missing)
    finally:
        view.end()
    return [found[panel.name] for panel in chosen]


def _chosen(names: Collection[str] | None) -> list[Panel]:
    panels = load_panels()
    known = [panel.name for panel in panels]
    for name in names or ():
        if name not in known:
            raise UsageError(f"no panel named {name!r}: {did_you_mean(name, known)}")
    return [panel for panel in panels if names is None or panel.name in names]


def _answer_all(report: Report, view: View, panels: list[Panel]) -> dict[str, PanelResult]:
    """`panels` answered by several threads, each through a cursor of its own, the caller's through `view`."""
    waiting, found = deque(panels), dict[str, PanelResult]()

    def work(view: View) -> None:
        while waiting:
            try:
                panel = waiting.popleft()
            except IndexError:
                return
            found[panel.name] = report.answer(panel, view)

    def help_out(cursor: duckdb.DuckDBPyConnection) -> None:
        helping = View(cursor, report.run_id)
        try:
            # Rows that were committed since the report began would be in some of its panels only.
            if helping.state == view.state:
                work(helping)
        finally:
            helping.end()

    cursors = [view.cursor.cursor() for _ in range(min(_MAX_THREADS, len(panels)) - 1)]
    with ThreadPoolExecutor(_MAX_THREADS, "panels") as pool:
        helpers = [pool.submit(help_out, cursor) for cursor in cursors]
        try:
            work(view)
            for helper in helpers:
                helper.result()
        finally:
            waiting.clear()
            _end(helpers, cursors)
            for cursor in cursors:
                cursor.close()
    return found


def _end(helpers: list[Future[None]], cursors: list[duckdb.DuckDBPyConnection]) -> None:
    # An interrupt between two steps of the engine is lost, so it is repeated until the other thread lets go.
    while wait(helpers, timeout=_INTERRUPT_EVERY_S).not_done:
        for cursor in cursors:
            cursor.interrupt()

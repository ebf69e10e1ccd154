"""What the Compare screen asks of the store: two runs side by side, and one panel of up to four. For a thread."""

from typing import NamedTuple

from dflash_tui.charts import MAX_TRACES
from dflash_tui.charts.series import to_number
from dflash_tui.comparison import Comparison, compare
from dflash_tui.runs import Run, Window
from dflash_tui.store.base import PanelResult, Store
from dflash_tui.store.panel_files import load_panels

# To see which panels have anything to draw, a point of each will do.
_A_LOOK = 2


class Known(NamedTuple):
    """What stays while only the chart changes. `charts` are the panels that a run has something to draw in."""

    runs: list[Run]
    comparison: Comparison
    charts: list[str]


class Question(NamedTuple):
    """`known` None: ask for all of it. `chart` None, or none of those there are: the first."""

    run_ids: list[str]
    window: Window
    chart: str | None
    buckets: int
    known: Known | None


class Answer(NamedTuple):
    """`drawn` is the panel of each run, empty when there is none to draw."""

    known: Known
    drawn: list[PanelResult]


def ask_comparison(ask: Question, store: Store) -> Answer:
    """Raises DflashError, also for a run that is gone."""
    known = ask.known or _look(ask, store)
    if known.comparison.window is None or not known.charts:
        return Answer(known, [])
    chart = ask.chart if ask.chart in known.charts else known.charts[0]
    window = Window.between(*known.comparison.window)
    drawn = [store.report(run.run_id, [chart], window, ask.buckets) for run in known.runs]
    return Answer(known, [result for results in drawn for result in results])


def _look(ask: Question, store: Store) -> Known:
    runs = [store.detail(run_id).run for run_id in ask.run_ids[:MAX_TRACES]]
    comparison = compare(store, runs[0], runs[1] if len(runs) > 1 else None, ask.window)
    if comparison.window is None:
        return Known(runs, comparison, [])
    window, names = Window.between(*comparison.window), _chart_names()
    looks = [store.report(run.run_id, names, window, _A_LOOK) for run in runs]
    there = {result.name for results in looks for result in results if has_course(result)}
    return Known(runs, comparison, [name for name in names if name in there])


def has_course(result: PanelResult) -> bool:
    """Whether it is rows of numbers over numbers: those of several runs can be laid over each other."""
    x = result.axes.get("x", result.columns[0] if result.columns else "")
    if result.state != "rows" or x not in result.columns:
        return False
    place = result.columns.index(x)
    return all(to_number(row[place]) is not None for row in result.rows)


def _chart_names() -> list[str]:
    return [panel.name for panel in load_panels() if panel.chart in ("line", "band", "bars")]


def chart_of(metric: str) -> str | None:
    """The panel that draws the course of a figure: the first that needs its key."""
    for panel in load_panels():
        if panel.chart in ("line", "band", "bars") and any(metric in need.keys for need in panel.requires):
            return panel.name
    return None

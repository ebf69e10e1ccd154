"""Charts: the rows of a panel -> a canvas of characters and roles.

Pure functions on lists: no colours, no SQL, no clock, nothing else of ours. A chart kind is one file with one draw
function and one line in CHARTS. Every kind draws on any canvas, down to 1 x 1, as much as fits.
"""

from collections.abc import Sequence
from typing import Protocol

from dflash_tui.charts.bars import draw_bars
from dflash_tui.charts.canvas import Canvas, Role, Span
from dflash_tui.charts.histogram import draw_histogram
from dflash_tui.charts.line import draw_line
from dflash_tui.charts.options import NO_OPTIONS, Level, Mark, Options
from dflash_tui.charts.overlay import MAX_TRACES, Trace, draw_overlay
from dflash_tui.charts.series import Axes, ChartError, Rows
from dflash_tui.charts.sparks import draw_sparks, spark
from dflash_tui.charts.stat import draw_stat
from dflash_tui.charts.table import draw_table
from dflash_tui.charts.tally import Tally

__all__ = [
    "CHARTS", "MAX_TRACES", "Canvas", "ChartError", "Draw", "Level", "Mark", "Options", "Role", "Span", "Tally",
    "Trace", "draw", "draw_overlay", "spark",
]  # fmt: skip


class Draw(Protocol):
    """What every chart is. `scale` is that of the measured values, `axes` what the panel's header says."""

    def __call__(
        self,
        columns: Sequence[str],
        rows: Rows,
        axes: Axes,
        *,
        width: int,
        height: int,
        scale: str = "linear",
        unit: str | None = None,
        options: Options = NO_OPTIONS,
    ) -> Canvas: ...


CHARTS: dict[str, Draw] = {
    "table": draw_table,
    "line": draw_line,
    "band": draw_line,
    "bars": draw_bars,
    "hist": draw_histogram,
    "spark": draw_sparks,
    "stat": draw_stat,
}


def draw(
    kind: str,
    columns: Sequence[str],
    rows: Rows,
    axes: Axes,
    *,
    width: int,
    height: int,
    scale: str = "linear",
    unit: str | None = None,
    options: Options = NO_OPTIONS,
) -> Canvas:
    """Draw a chart of a kind in CHARTS; what it cannot draw stands on the canvas as a sentence, not as an error."""
    try:
        return CHARTS[kind](columns, rows, axes, width=width, height=height, scale=scale, unit=unit, options=options)
    except ChartError as error:
        return Canvas(width, height).note(str(error), Role.BAD)

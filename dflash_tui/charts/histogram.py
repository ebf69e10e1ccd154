"""Vertical histogram of bins that the query made, linear or log.

Owns the chart kind `hist`. Every bin is equally wide, in the order of its edges; a hole between bins stays a hole.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dflash_tui.charts.canvas import EIGHTHS_UP, Canvas, Role
from dflash_tui.charts.cells import fit
from dflash_tui.charts.frame import Frame, draw_axes, lay_out
from dflash_tui.charts.options import NO_OPTIONS, Options
from dflash_tui.charts.scale import fit_scale
from dflash_tui.charts.series import Axes, Rows, named_or, numbers, sort_out
from dflash_tui.charts.tally import Tally

_MIN_ROWS_FOR_NOTES = 4
_SAME_WIDTH = 1e-6


class Bin(NamedTuple):
    low: float
    high: float
    num: float


def draw_histogram(
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
    """Axes: low, high (edges of a bin; first two columns), y (its count; third). `scale` is that of the edges."""
    canvas = Canvas(width, height)
    bins = _read(columns, rows, axes, scale, canvas.tally)
    edges = fit_scale(scale, [edge for b in bins for edge in (b.low, b.high)])
    counts = fit_scale("linear", [0.0, *(b.num for b in bins)])
    if edges is None or counts is None:
        return canvas.note("no rows" if not rows else f"nothing to draw: {canvas.tally.fates()}")
    if counts.high <= 0 or counts.only is not None:
        return canvas.note(f"0 in each of {len(bins)} bins")
    notes = canvas.tally.notes()
    num_head_rows = 1 if notes and canvas.height >= _MIN_ROWS_FOR_NOTES else 0
    if num_head_rows:
        canvas.write_right(canvas.width, 0, fit(notes, canvas.width), Role.BAD)
    frame = lay_out(canvas, edges, counts, num_head_rows)
    frame = replace(frame, width=_even_width(frame.width, bins, scale))
    draw_axes(frame, unit or "")
    _draw_columns(frame, bins)
    return canvas


def _read(columns: Sequence[str], rows: Rows, axes: Axes, scale: str, tally: Tally) -> list[Bin]:
    """The bins that have a place on the axis and a count, in order."""
    lows, highs, counts = (
        numbers(columns, rows, named_or(axes, key, columns, place)) for place, key in enumerate(("low", "high", "y"))
    )
    bins: list[Bin] = []
    for low, high, count in zip(lows, highs, counts, strict=True):
        if low is None or high is None or not -math.inf < low <= high < math.inf:
            tally.num_without_x += 1
        elif scale == "log" and low <= 0:
            tally.num_off_log += 1
        else:
            bins += [Bin(low, high, n) for n in sort_out([count], False, tally) if n is not None]
    return sorted(bins)


def _even_width(width: int, bins: Sequence[Bin], scale: str) -> int:
    """A plot width in which bins of one width take equally many columns, or equally many bins take one."""
    edges = [(math.log10(b.low), math.log10(b.high)) if scale == "log" else (b.low, b.high) for b in bins]
    widths = [high - low for low, high in edges]
    span, step = max(high for _, high in edges) - min(low for low, _ in edges), min(widths)
    if not 0 < step <= span < math.inf or max(widths) - step > step * _SAME_WIDTH:
        return width
    num_bins = round(span / step)
    num_merged = -(-num_bins // width)
    return width // num_bins * num_bins if num_merged == 1 else max(1, num_bins // num_merged)


def _draw_columns(frame: Frame, bins: Sequence[Bin]) -> None:
    """Each bin over its columns, at least one; the counts of bins that share a column add up."""
    place = frame.x.placer(frame.width + 1)
    counts = [0.0] * frame.width
    for low, high, num in bins:
        first = min(place(low), frame.width - 1)
        for column in range(first, max(first + 1, place(high))):
            counts[column] += num
    eighths = frame.y.placer(8 * frame.height + 1)
    for column, count in enumerate(counts, frame.left):
        if count > 0:
            full, rest = divmod(max(1, eighths(count)), 8)
            for y in range(full):
                frame.canvas.put(column, frame.bottom - y, "█", Role.DATA)
            if rest:
                frame.canvas.put(column, frame.bottom - full, EIGHTHS_UP[rest], Role.DATA)

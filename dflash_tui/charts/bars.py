"""Horizontal bars: a label, a bar from zero, the value and the number of rows behind it.

Owns the chart kind `bars`. Zero is no bar, a negative value goes left of zero, a missing one is said in words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dflash_tui.charts.canvas import EIGHTHS_RIGHT, RIGHT_HALF, Canvas, Role
from dflash_tui.charts.cells import fit, text_width
from dflash_tui.charts.format import column, number
from dflash_tui.charts.options import NO_OPTIONS, Options
from dflash_tui.charts.scale import Scale, fit_scale
from dflash_tui.charts.series import Axes, Rows, named, named_or, numbers, sort_out, texts

_MIN_BAR = 4
_REST = "·"
_TARGET = "┃"
_NO_VALUE = "no value"


@dataclass(frozen=True, slots=True)
class _Layout:
    """Widths in cells: label, bar, value and n from left to right, one blank between; 0 is left out."""

    label: int
    bar: int
    value: int
    num: int


def draw_bars(
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
    """Axes: x (labels; first column), y (values; second column), n (counts; the column "n" if there is one).

    A target is a stroke in the bar of its label; the share of it that is reached stands instead of n.
    """
    canvas = Canvas(width, height)
    labels = texts(columns, rows, named_or(axes, "x", columns, 0))
    values = numbers(columns, rows, named_or(axes, "y", columns, 1))
    if not rows:
        return canvas.note("no rows")
    drawable = sort_out(values, scale == "log", canvas.tally)
    said = [_NO_VALUE if v is None else t for v, t in zip(values, column(values), strict=True)]
    said = [f"{text} {unit}" if unit and v is not None else text for text, v in zip(said, drawable, strict=True)]
    counts = _counts(columns, rows, axes)
    targets = [options.targets.get(label) for label in labels]
    if any(target is not None for target in targets):
        counts = [_share(v, target) for v, target in zip(drawable, targets, strict=True)]
    layout = _lay_out(canvas.width, labels, said, counts)
    axis = _axis(scale, [v for v in (*drawable, *targets) if v is not None])
    num_shown = len(rows) if len(rows) <= canvas.height else canvas.height - 1
    stride = 2 if 2 * num_shown - 1 <= canvas.height else 1
    for i in range(num_shown):
        _draw_row(canvas, i * stride, layout, (labels[i], said[i], counts[i]), values[i])
        if layout.bar and axis is not None:
            x = layout.label + 1 if layout.label else 0
            _draw_bar(canvas, x, i * stride, layout.bar, axis, drawable[i])
            if (target := targets[i]) is not None and axis.shows(target):
                canvas.put(x + axis.placer(layout.bar)(target), i * stride, _TARGET, Role.MARK)
    if num_shown < len(rows):
        canvas.write(0, num_shown, fit(f"… {len(rows) - num_shown} more", canvas.width), Role.MUTED)
    return canvas


def _share(value: float | None, target: float | None) -> str:
    return "" if value is None or not target else f"{value / target:.0%}"


def _counts(columns: Sequence[str], rows: Rows, axes: Axes) -> list[str]:
    names = named(axes, "n") or ["n" for name in columns if name == "n"]
    if not names:
        return [""] * len(rows)
    return [f"n={number(n)}" for n in numbers(columns, rows, names[0])]


def _axis(scale: str, values: list[float]) -> Scale | None:
    """From zero to the values; on a log axis from the power of ten below them, so that the least still has a bar."""
    if not values:
        return None
    if scale == "log":
        floor = 10.0 ** (math.ceil(math.log10(min(values))) - 1)
        return fit_scale("log", [floor, *values])
    return fit_scale("linear", [0.0, *values])


def _lay_out(width: int, labels: list[str], said: list[str], counts: list[str]) -> _Layout:
    """Give up n first, then the bar; cut the labels only when the value would not fit beside them."""
    label, value, num = (max(map(text_width, column_)) for column_ in (labels, said, counts))
    short_label = min(label, max(8, width // 3))
    for num_ in (num, 0):
        bar = width - sum(part + 1 for part in (short_label, value, num_) if part)
        if bar >= _MIN_BAR:
            return _Layout(short_label, bar, value, num_)
    return _Layout(min(label, max(0, width - value - 1)), 0, min(value, width), 0)


def _draw_row(canvas: Canvas, y: int, layout: _Layout, texts_: tuple[str, str, str], value: float | None) -> None:
    label, said, count = texts_
    canvas.write(0, y, fit(label, layout.label), Role.LABEL)
    role = Role.MUTED if value is None else Role.TEXT if math.isfinite(value) else Role.BAD
    end = canvas.width - (layout.num + 1 if layout.num else 0)
    canvas.write_right(end, y, fit(said, layout.value), role)
    if layout.num:
        canvas.write_right(canvas.width, y, count, Role.MUTED)


def _draw_bar(canvas: Canvas, x: int, y: int, width: int, axis: Scale, value: float | None) -> None:
    """A bar between zero and the value, in eighths to the right, in halves to the left; dots where there is none."""
    canvas.write(x, y, _REST * width, Role.GRID)
    if value is None:
        return
    place = axis.placer(8 * width + 1)
    origin = max(axis.low, 0.0)
    # Bars begin between two cells, as no block begins inside one, and are as long as from the true origin.
    zero = round(place(origin) / 8)
    end = 8 * zero + place(value) - place(origin)
    if value > origin:
        end = min(8 * width, max(end, 8 * zero + 1))
        for cell in range(zero, -(-end // 8)):
            canvas.put(x + cell, y, EIGHTHS_RIGHT[min(8, end - 8 * cell)], Role.DATA)
    elif value < 0:
        first = max(0, min(end // 8, zero - 1))
        canvas.put(x + first, y, RIGHT_HALF if end - 8 * first > 2 else "█", Role.DATA)
        canvas.write(x + first + 1, y, "█" * (zero - first - 1), Role.DATA)

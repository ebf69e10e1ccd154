"""Lines over x with gaps where values are missing, a band between two percentiles, and marks.

Owns the chart kinds `line` and `band`: x, one to three y columns, optionally low and high. A gap is never bridged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dflash_tui.charts.band import Edges, draw_band
from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import fit, shares, text_width
from dflash_tui.charts.dots import DASHED, DOTTED, PATTERN_SAMPLES, SOLID, Dots
from dflash_tui.charts.frame import Frame, draw_axes, lay_out
from dflash_tui.charts.marks import LEVEL, cross_out, draw_cursor, draw_level, draw_marks, label_marks, point_beyond
from dflash_tui.charts.options import NO_OPTIONS, Level, Options
from dflash_tui.charts.scale import fit_scale, inliers
from dflash_tui.charts.series import Axes, ChartError, Rows, named, named_or, numbers, sort_out
from dflash_tui.charts.smoothing import smooth
from dflash_tui.charts.tally import Tally

_LOOKS = ((Role.DATA, SOLID), (Role.SECOND, DOTTED), (Role.THIRD, DASHED))
_MIN_ROWS_FOR_NOTES = 4
_MIN_ROWS_FOR_UNIT = 9
_MIN_NAME = 4


@dataclass(frozen=True, slots=True)
class _Lines:
    """What is drawn: the x of each row, and what each row has there."""

    xs: list[float]
    names: list[str]
    series: list[list[float | None]]
    raw: list[list[float | None]]
    """Each series as it was before it was smoothed; nothing when none was."""
    band: list[Edges | None]
    non_finite_xs: list[float]
    tally: Tally


def draw_line(
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
    """Axes: x; y and y2 (three columns in all, on one axis); low, high (a band); x_scale (linear, log, time, duration).

    `clip=outliers` lets values far outside the rest of a linear axis end at its edge, with a mark and a count.
    """
    canvas = Canvas(width, height)
    lines = _read(columns, rows, axes, scale, options)
    canvas.tally = lines.tally
    is_clipped = axes.get("clip") == "outliers" and scale == "linear"
    shown = _shown(lines, options.levels, is_clipped)
    x, y = fit_scale(axes.get("x_scale", "linear"), options.x_limits or lines.xs), fit_scale(scale, shown)
    if x is None or y is None or not lines.xs:
        fates = lines.tally.fates()
        return canvas.note(f"nothing to draw: {fates}" if fates else "no rows" if not rows else "no rows in view")
    if is_clipped:
        seen = (v for values in lines.series for v in values if v is not None)
        lines.tally.num_clipped = sum(not y.low <= v <= y.high for v in seen)
    levels = [level.value for level in options.levels if y.shows(level.value)]
    frame = lay_out(canvas, x, y, _draw_head(canvas, lines, unit, options.levels), levels)
    canvas.x_of = frame.x_of
    draw_axes(frame, named_or(axes, "x", columns, 0))
    across = frame.dots_across(lines.xs)
    if lines.band:
        draw_band(frame, across, lines.band)
    for level in levels:
        draw_level(frame, level)
    draw_marks(frame, options.marks)
    draw_cursor(frame, options.cursor)
    for values in lines.raw:
        draw_series(frame, across, values, Role.MUTED, DOTTED)
    # The first series last: it lies on top.
    for values, look in reversed(list(zip(lines.series, _LOOKS, strict=False))):
        draw_series(frame, across, values, *look, is_joined=not lines.raw)
        if lines.tally.num_clipped:
            point_beyond(frame, lines.xs, values)
    cross_out(frame, lines.non_finite_xs)
    label_marks(frame, options.marks)
    return canvas


def _shown(lines: _Lines, levels: Sequence[Level], is_clipped: bool) -> list[float]:
    """The values that the y axis has to hold."""
    drawn = [[v for v in values if v is not None] for values in lines.raw or lines.series]
    drawn += map(list, zip(*filter(None, lines.band), strict=True))
    if is_clipped:
        # Each by itself: the far apart edges of a band would let everything pass.
        drawn = [inliers(values) for values in drawn]
    shown = [v for values in drawn for v in values]
    return shown + [level.value for level in levels] if shown else []


def _read(columns: Sequence[str], rows: Rows, axes: Axes, scale: str, options: Options) -> _Lines:
    tally = Tally()
    low, high = options.x_limits or (-math.inf, math.inf)
    names = [*(named(axes, "y") or [named_or(axes, "y", columns, 1)]), *named(axes, "y2")]
    if len(names) > len(_LOOKS):
        raise ChartError(f"y names {len(names)} columns; a line chart tells {len(_LOOKS)} apart")
    is_log_x = axes.get("x_scale") == "log"
    xs: list[float] = []
    kept: list[Sequence[object]] = []
    for x, row in zip(numbers(columns, rows, named_or(axes, "x", columns, 0)), rows, strict=True):
        if x is None or not math.isfinite(x) or (is_log_x and x <= 0):
            tally.num_without_x += len(names)
        elif low <= x <= high:
            xs.append(x)
            kept.append(row)
    raw = [numbers(columns, kept, name) for name in names]
    series = [sort_out(values, scale == "log", tally) for values in raw]
    bad: list[float] = []
    if tally.num_non_finite:
        bad = [x for values in raw for x, v in zip(xs, values, strict=True) if v is not None and not math.isfinite(v)]
    band = _read_band(columns, kept, axes)
    if not options.smoothing:
        return _Lines(xs, names, series, [], band, bad, tally)
    return _Lines(xs, names, [smooth(values, options.smoothing) for values in series], series, band, bad, tally)


def _read_band(columns: Sequence[str], rows: Rows, axes: Axes) -> list[Edges | None]:
    if "low" not in axes or "high" not in axes:
        return []
    lows, highs = (numbers(columns, rows, axes[key]) for key in ("low", "high"))
    return [
        (low, high) if low is not None and high is not None and math.isfinite(low) and math.isfinite(high) else None
        for low, high in zip(lows, highs, strict=True)
    ]


def _draw_head(canvas: Canvas, lines: _Lines, unit: str | None, levels: Sequence[Level]) -> int:
    """The row above the plot: unit, levels and legend left, what was left out right. Returns how many rows it took."""
    notes = lines.tally.notes()
    # A line that the run never had, its declared schedule say, is not told of.
    there = [i for i, values in enumerate(lines.series) if any(v is not None for v in values)]
    has_legend = there not in ([], [0])
    has_unit = bool(unit) and canvas.height >= _MIN_ROWS_FOR_UNIT
    if canvas.height < _MIN_ROWS_FOR_NOTES or not (has_unit or has_legend or levels or notes):
        return 0
    entries = [(LEVEL * 2, level.name, Role.TEXT) for level in levels]
    if has_legend:
        looks = [(lines.names[i], *_LOOKS[i]) for i in there]
        entries += [(PATTERN_SAMPLES[pattern], name, role) for name, role, pattern in looks]
    notes = fit(notes, canvas.width)
    canvas.write_right(canvas.width, 0, notes, Role.BAD)
    end = canvas.width - (text_width(notes) + 2 if notes else 0)
    _write_legend(canvas, unit if has_unit else None, entries, len(levels), end)
    return 1


def _write_legend(
    canvas: Canvas, unit: str | None, entries: list[tuple[str, str, Role]], num_levels: int, end: int
) -> None:
    """Unit, and sample and name of each entry, in the first row up to `end`; the first `num_levels` are levels. What is
    too long gives way in this order: samples, names of lines down to four cells, the unit, names of lines, levels."""
    names = [text_width(name) for _, name, _ in entries]
    whole, others = names[:num_levels], names[num_levels:]

    def cells_of(most: int) -> int:
        names_of_lines = sum(min(width, most) for width in others)
        return sum(len(sample) + 3 for sample, _, _ in entries) + sum(whole) + names_of_lines

    head = text_width(unit) + 2 if unit else 0
    if head + cells_of(canvas.width) - 2 > end:
        entries = [(sample[:2], name, role) for sample, name, role in entries]
    if unit and (not entries or head + cells_of(_MIN_NAME) - 2 <= end):
        canvas.write(0, 0, fit(unit, end), Role.LABEL)
    else:
        head = 0
    room = end - head - sum(len(sample) + 3 for sample, _, _ in entries) + 2
    of_levels = shares(whole, max(room - len(others), len(whole)))
    widths = [*of_levels, *shares(others, room - sum(of_levels))]
    x = head
    for (sample, name, role), width in zip(entries, widths, strict=True):
        text = f"{sample} {fit(name, width)}"
        canvas.write(x, 0, fit(text, end - x), role)
        x += text_width(text) + 2


def draw_series(
    frame: Frame,
    across: Sequence[int | None],
    values: Sequence[float | None],
    role: Role,
    pattern: int,
    *,
    is_joined: bool = True,
) -> None:
    """Join neighbours; a value with none on either side is a blob. `is_joined`: also with a faint line below.

    `across` are the dot columns of the values.
    """
    dots = Dots(frame.width, frame.height)
    last = dots.num_y - 1
    path: list[tuple[int, int]] = []
    for x, y in zip(across, frame.y.places(values, dots.num_y), strict=True):
        if x is not None and y is not None:
            path.append((x, last - y))
        elif path:
            dots.path(path)
            path = []
    if path:
        dots.path(path)
    dots.stamp(frame.canvas, frame.left, frame.top, role, pattern, is_joined=is_joined)

"""Sparks: a series in one row of eighth blocks, as wide as there is room, with its gaps.

Owns the chart kind `spark` (one row for each y column: name, spark, last value) and the spark in a table.
"""

import math
from collections.abc import Sequence

from dflash_tui.charts.canvas import EIGHTHS_UP, Canvas, Role
from dflash_tui.charts.cells import fit, text_width
from dflash_tui.charts.format import ABSENT, number
from dflash_tui.charts.marks import CURSOR
from dflash_tui.charts.options import NO_OPTIONS, Options
from dflash_tui.charts.reading import row_at
from dflash_tui.charts.scale import fit_scale
from dflash_tui.charts.series import Axes, ChartError, Rows, named, named_or, numbers, sort_out

GAP = " "
NOT_FINITE = "×"
_MIN_SPARK = 4


def spark(values: Sequence[float | None], width: int, scale: str = "linear") -> str:
    """At most `width` blocks, the lowest value lowest; each stands for the mean of its share of the values.

    A blank is a stretch without values, a cross one with nothing but NaN or infinities. One value is one block.
    """
    num_blocks = min(width, len(values))
    shares = [values[i * len(values) // num_blocks : (i + 1) * len(values) // num_blocks] for i in range(num_blocks)]
    means = [_mean(share, scale) for share in shares]
    axis = fit_scale(scale, [m for m in means if m is not None])
    if axis is None:
        return "".join(map(_gap, shares))
    place = axis.placer(len(EIGHTHS_UP) - 1)
    return "".join(
        _gap(share) if mean is None else EIGHTHS_UP[1 + place(mean)] for share, mean in zip(shares, means, strict=True)
    )


def draw_sparks(
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
    """Axes: y (columns; by default all but the first). One row each; a narrow canvas keeps only the sparks."""
    canvas = Canvas(width, height)
    names = named(axes, "y") or list(columns[1:])
    if not names:
        raise ChartError("no column for y: a spark needs one besides x")
    if not rows:
        return canvas.note("no rows")
    series = [numbers(columns, rows, name) for name in names]
    lasts = [number(next((v for v in reversed(values) if v is not None), None)) for values in series]
    lasts = [f"{last} {unit}" if unit and last != ABSENT else last for last in lasts]
    label_width = max(map(text_width, names)) + 1 if len(names) > 1 else 0
    last_width = max(map(text_width, lasts)) + 1
    if label_width + last_width + _MIN_SPARK > canvas.width:
        label_width = 0
    if last_width + _MIN_SPARK > canvas.width:
        last_width = 0
    row = None if options.cursor is None else row_at(columns, rows, named_or(axes, "x", columns, 0), options.cursor)
    num_shown = len(names) if len(names) <= canvas.height else canvas.height - 1
    for y, (name, values, last) in enumerate(zip(names[:num_shown], series, lasts, strict=False)):
        if label_width:
            canvas.write(0, y, name, Role.LABEL)
        blocks = spark(values, canvas.width - label_width - last_width, scale)
        for x, block in enumerate(blocks, label_width):
            canvas.put(x, y, block, Role.BAD if block == NOT_FINITE else Role.DATA)
        if row is not None and blocks:
            canvas.put(label_width + row * len(blocks) // len(rows), y, CURSOR, Role.FOCUS)
        if last_width:
            canvas.write_right(canvas.width, y, last, Role.TEXT)
        sort_out(values, scale == "log", canvas.tally)
    if num_shown < len(names):
        canvas.write(0, num_shown, fit(f"… {len(names) - num_shown} more", canvas.width), Role.MUTED)
    return canvas


def _mean(share: Sequence[float | None], scale: str) -> float | None:
    finite = [v for v in share if v is not None and math.isfinite(v) and (scale != "log" or v > 0)]
    # Each divided first: the sum of large doubles is infinite.
    return math.fsum(v / len(finite) for v in finite) if finite else None


def _gap(share: Sequence[float | None]) -> str:
    return NOT_FINITE if any(v is not None and not math.isfinite(v) for v in share) else GAP

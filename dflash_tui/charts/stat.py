"""One number to be read from afar, and what belongs to it.

Owns the chart kind `stat`: the first row of the query, its y column above, the other columns below as name and value.
"""

from collections.abc import Sequence

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import fit, text_width
from dflash_tui.charts.format import number
from dflash_tui.charts.options import NO_OPTIONS, Options
from dflash_tui.charts.series import Axes, Rows, named_or, numbers, sort_out


def draw_stat(
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
    """Axes: y (the number; first column). Text is allowed everywhere."""
    canvas = Canvas(width, height)
    if not rows:
        return canvas.note("no rows")
    main = named_or(axes, "y", columns, 0)
    values = numbers(columns, rows[:1], main)
    sort_out(values, scale == "log", canvas.tally)
    said = dict(zip(columns, map(_say, rows[0]), strict=True))
    big = f"{said[main]} {unit}" if unit and values[0] is not None else said[main]
    canvas.write(0, 0, fit(big, canvas.width), Role.DATA if canvas.tally.num_drawn else Role.TEXT)
    others = [name for name in columns if name != main]
    gutter = max(map(text_width, others), default=0) + 2
    for y, name in enumerate(others, 1):
        canvas.write(0, y, fit(name, canvas.width), Role.LABEL)
        if gutter < canvas.width:
            canvas.write(gutter, y, fit(said[name], canvas.width - gutter), Role.TEXT)
    return canvas


def _say(cell: object) -> str:
    return number(cell) if cell is None or isinstance(cell, (int, float)) else str(cell)

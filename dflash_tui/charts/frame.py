"""The axes around a plot: who gets which rows and columns of the canvas, and the ticks that fit there.

Owns layout and labels. A canvas too small for an axis goes without it, so that the data stay to be seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import text_width
from dflash_tui.charts.format import short
from dflash_tui.charts.scale import Scale
from dflash_tui.charts.ticks import Tick

MIN_ROWS_FOR_X_AXIS = 4
MIN_PLOT_WIDTH = 8
ROWS_PER_Y_TICK = 3
MAX_X_TICKS = 8
GRID = "┈"


@dataclass(frozen=True, slots=True)
class Frame:
    """A plot on its canvas: first cell, size, scales, and which axes there is room for."""

    canvas: Canvas
    left: int
    top: int
    width: int
    height: int
    x: Scale
    y: Scale
    has_x_axis: bool
    has_y_axis: bool
    y_ticks: Sequence[tuple[int, Tick]]
    """Ticks with the plot row they stand in, no two in one row."""

    @property
    def bottom(self) -> int:
        """The canvas row of the plot's last row; the x axis, if any, is below it."""
        return self.top + self.height - 1

    def dots_across(self, xs: Sequence[float]) -> list[int | None]:
        """The dot columns of values on the x axis."""
        return self.x.places(xs, 2 * self.width)

    def columns_of(self, xs: Iterable[float]) -> list[int]:
        """The canvas columns of values on the x axis."""
        place = self.x.placer(2 * self.width)
        return [self.left + place(x) // 2 for x in xs]

    def x_of(self, column: int) -> float | None:
        """What a canvas column stands for on the x axis; None beside the plot."""
        dot = 2 * (column - self.left)
        return self.x.value(dot, 2 * self.width) if 0 <= dot < 2 * self.width else None


def lay_out(canvas: Canvas, x: Scale, y: Scale, num_head_rows: int, levels: Sequence[float] = ()) -> Frame:
    """Share out the canvas: head rows on top, then the plot with the y axis to its left and the x axis below.

    A row that holds one of `levels` is labelled by that: a round number there would be read as its value.
    """
    has_x_axis = canvas.height - num_head_rows >= MIN_ROWS_FOR_X_AXIS
    height = canvas.height - num_head_rows - (2 if has_x_axis else 0)
    y_ticks = _rows_of(y, height, levels)
    gutter = max((text_width(tick.label) for _, tick in y_ticks), default=0) + 1
    has_y_axis = bool(y_ticks) and canvas.width - gutter >= max(MIN_PLOT_WIDTH, gutter)
    left = gutter if has_y_axis else 0
    return Frame(canvas, left, num_head_rows, canvas.width - left, height, x, y, has_x_axis, has_y_axis, y_ticks)


def draw_axes(frame: Frame, x_name: str) -> None:
    """Grid lines, both axes with their labels, and the name of x where it finds room."""
    if frame.has_y_axis:
        _draw_y_axis(frame)
    if frame.has_x_axis:
        _draw_x_axis(frame, x_name)


def _rows_of(y: Scale, height: int, levels: Sequence[float]) -> list[tuple[int, Tick]]:
    place = y.placer(4 * height)
    fewest = max(2, height // ROWS_PER_Y_TICK)
    rows: dict[int, Tick] = {}
    # A tick alone tells no scale: ticks that fall into one row are tried closer.
    for num_max in range(fewest, max(fewest, height) + 1):
        for tick in y.ticks(num_max):
            rows.setdefault(height - 1 - place(tick.value) // 4, tick)
        if len(rows) > 1:
            break
    for level in levels:
        rows[height - 1 - place(level) // 4] = Tick(level, short(level))
    return list(rows.items())


def _draw_y_axis(frame: Frame) -> None:
    canvas, line = frame.canvas, frame.left - 1
    for y in range(frame.top, frame.bottom + 1):
        canvas.put(line, y, "│", Role.AXIS)
    for row, tick in frame.y_ticks:
        y = frame.top + row
        canvas.write_right(line, y, tick.label, Role.LABEL)
        canvas.put(line, y, "┤", Role.AXIS)
        canvas.rule(frame.left, y, frame.width, GRID, Role.GRID)


def _draw_x_axis(frame: Frame, x_name: str) -> None:
    canvas, y = frame.canvas, frame.bottom + 1
    if frame.has_y_axis:
        canvas.put(frame.left - 1, y, "└", Role.AXIS)
    canvas.rule(frame.left, y, frame.width, "─", Role.AXIS)
    free_from = 0
    for column, start, label in _x_labels(frame):
        canvas.put(column, y, "┬", Role.AXIS)
        canvas.write(start, y + 1, label, Role.LABEL)
        free_from = start + text_width(label) + 2
    if free_from + text_width(x_name) <= canvas.width:
        canvas.write_right(canvas.width, y + 1, x_name, Role.MUTED)


def _x_labels(frame: Frame) -> list[tuple[int, int, str]]:
    """The most ticks whose labels stand two cells apart, as (column of the tick, start of the label, label).

    Where even the fewest are too close, each second or third of them, the last among them.
    """
    ticks: Sequence[Tick] = ()
    for num_max in range(max(2, min(MAX_X_TICKS, frame.width // 5)), 0, -1):
        ticks = frame.x.ticks(num_max)
        if (placed := _placed(frame, ticks)) is not None:
            return placed
    for stride in range(2, len(ticks) + 1):
        if (placed := _placed(frame, ticks[(len(ticks) - 1) % stride :: stride])) is not None:
            return placed
    return []


def _placed(frame: Frame, ticks: Sequence[Tick]) -> list[tuple[int, int, str]] | None:
    """Where these ticks and their labels stand; None if two labels are closer than two cells."""
    canvas_width, place = frame.canvas.width, frame.x.placer(2 * frame.width)
    placed: list[tuple[int, int, str]] = []
    free_from = 0
    for value, label in ticks:
        column = frame.left + place(value) // 2
        width = text_width(label)
        start = max(0, min(canvas_width - width, column - (width - 1) // 2))
        if start < free_from or width > canvas_width:
            return None
        placed.append((column, start, label))
        free_from = start + width + 2
    return placed

"""What stands out on a plot: lines at an x or at a value, crosses for what is no number, triangles for what is clipped.

Owns these signs. They are characters, not dots, so that they read without colour.
"""

from collections.abc import Sequence

from dflash_tui.charts.canvas import SHADE, Role
from dflash_tui.charts.cells import text_width
from dflash_tui.charts.frame import GRID, Frame
from dflash_tui.charts.options import Mark

CURSOR = "┃"
LEVEL = "╌"
MIN_GAP = 4
_FREE = {" ", GRID, SHADE}


def draw_marks(frame: Frame, marks: Sequence[Mark]) -> None:
    """A dashed line from top to bottom at each mark; series are drawn over it.

    Of many resumes close together those too near to the line before stand on the x axis alone, so that the plot stays
    to be seen.
    """
    free_from = 0
    for column, mark in sorted(_places(frame, marks), key=lambda place: (place[1].is_bad, place[0])):
        if mark.sign or column >= free_from or not frame.has_x_axis:
            for y in range(frame.top, frame.bottom + 1):
                frame.canvas.put(column, y, "┊", _role(mark))
            free_from = column + MIN_GAP
        if frame.has_x_axis:
            frame.canvas.put(column, frame.bottom + 1, mark.sign or "┴", _role(mark))


def label_marks(frame: Frame, marks: Sequence[Mark]) -> None:
    """Each mark's label, right of its line at the top, if nothing else is drawn there."""
    canvas, y = frame.canvas, frame.top
    for column, mark in _places(frame, marks):
        label = mark.label
        end = column + 1 + text_width(label)
        if end <= canvas.width and all(canvas.char(x, y) in _FREE for x in range(column + 1, end)):
            canvas.write(column + 1, y, label, _role(mark))


def draw_cursor(frame: Frame, x: float | None) -> None:
    """A heavy line from top to bottom; series are drawn over it."""
    if x is None or not frame.x.low <= x <= frame.x.high:
        return
    [column] = frame.columns_of([x])
    for y in range(frame.top, frame.bottom + 1):
        frame.canvas.put(column, y, CURSOR, Role.FOCUS)
    if frame.has_x_axis:
        frame.canvas.put(column, frame.bottom + 1, "┸", Role.FOCUS)


def draw_level(frame: Frame, value: float) -> None:
    """A dashed line from edge to edge at a value of the y axis."""
    row = frame.bottom - frame.y.placer(4 * frame.height)(value) // 4
    frame.canvas.rule(frame.left, row, frame.width, LEVEL, Role.TEXT)


def cross_out(frame: Frame, xs: Sequence[float]) -> None:
    """A cross on the x axis, or in the plot's last row, below each x whose value is NaN or infinite."""
    y = frame.bottom + (1 if frame.has_x_axis else 0)
    for column in frame.columns_of(xs):
        frame.canvas.put(column, y, "×", Role.BAD)


def point_beyond(frame: Frame, xs: Sequence[float], values: Sequence[float | None]) -> None:
    """A triangle at the edge of the plot where a value lies beyond it."""
    for column, value in zip(frame.columns_of(xs), values, strict=True):
        if value is not None and value > frame.y.high:
            frame.canvas.put(column, frame.top, "▲", Role.MARK)
        elif value is not None and value < frame.y.low:
            frame.canvas.put(column, frame.bottom, "▼", Role.MARK)


def _role(mark: Mark) -> Role:
    return Role.BAD if mark.is_bad else Role.MARK


def _places(frame: Frame, marks: Sequence[Mark]) -> list[tuple[int, Mark]]:
    """The columns of the marks that lie on the axis."""
    seen = [m for m in marks if frame.x.low <= m.x <= frame.x.high]
    return list(zip(frame.columns_of(m.x for m in seen), seen, strict=True))

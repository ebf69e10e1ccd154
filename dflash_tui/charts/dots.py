"""Braille dots: a grid of 2 x 4 dots a cell, for lines finer than characters.

Owns where dots go. One layer is one series; it is stamped on a canvas in one role. Dot (0, 0) is top left.
"""

from collections.abc import Sequence

from dflash_tui.charts.canvas import Canvas, Role

BLANK = 0x2800
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
# Bits of a cell's dot column, from row y to the bottom, and from the top to row y: a steep line fills whole cells.
_DOWN_FROM = tuple(tuple(sum(_BITS[row][side] for row in range(y, 4)) for side in (0, 1)) for y in range(4))
_UP_FROM = tuple(tuple(sum(_BITS[row][side] for row in range(y + 1)) for side in (0, 1)) for y in range(4))
_LEFT = _DOWN_FROM[0][0]
_RIGHT = _DOWN_FROM[0][1]

SOLID, DOTTED, DASHED = range(3)
PATTERN_SAMPLES = ("⠒⠒⠒⠒", "⠂⠂⠂⠂", "⠒⠂⠒⠂")


class Dots:
    """A layer of `width` x `height` cells. Callers keep inside its num_x x num_y dots."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.num_x = 2 * width
        self.num_y = 4 * height
        self._masks = [0] * (width * height)

    def point(self, x: int, y: int) -> None:
        self._masks[(y >> 2) * self.width + (x >> 1)] |= _BITS[y & 3][x & 1]

    def blob(self, x: int, y: int) -> None:
        """A point that has no line to be seen by: 2 x 2 dots, all in its own cell."""
        for row in (y, y ^ 1):
            self.point(x, row)
            self.point(x ^ 1, row)

    def path(self, points: Sequence[tuple[int, int]]) -> None:
        """Neighbours joined by lines; a point that has none is a blob."""
        if len(points) == 1:
            self.blob(*points[0])
            return
        x, top = points[0]
        bottom = y = top
        for next_x, next_y in points:
            if next_x == x:
                # A dot column that many points share is filled once.
                top, bottom = min(top, next_y), max(bottom, next_y)
            else:
                self.column(x, top, bottom)
                self.segment(x, y, next_x, next_y)
                x, top, bottom = next_x, next_y, next_y
            y = next_y
        self.column(x, top, bottom)

    def column(self, x: int, y_from: int, y_to: int) -> None:
        """Every dot of a column between two rows, in either order, both included."""
        if y_from > y_to:
            y_from, y_to = y_to, y_from
        side = x & 1
        first = (y_from >> 2) * self.width + (x >> 1)
        last = (y_to >> 2) * self.width + (x >> 1)
        masks = self._masks
        if first == last:
            masks[first] |= _DOWN_FROM[y_from & 3][side] & _UP_FROM[y_to & 3][side]
            return
        masks[first] |= _DOWN_FROM[y_from & 3][side]
        for cell in range(first + self.width, last, self.width):
            masks[cell] |= _DOWN_FROM[0][side]
        masks[last] |= _UP_FROM[y_to & 3][side]

    def segment(self, x0: int, y0: int, x1: int, y1: int) -> None:
        """A line between two dots, both included, without a hole and one dot thick."""
        if x1 < x0:
            x0, y0, x1, y1 = x1, y1, x0, y0
        width, rise = x1 - x0, y1 - y0
        if abs(rise) <= width:
            for i in range(width + 1):
                self.point(x0 + i, y0 + (2 * rise * i + width) // (2 * width or 1))
            return
        sign = 1 if rise > 0 else -1
        first = 0
        for i in range(width):
            # The last row whose place on the line is nearer to column i than to the next.
            last = ((2 * i + 1) * abs(rise) - 1) // (2 * width)
            self.column(x0 + i, y0 + sign * first, y0 + sign * last)
            first = last + 1
        self.column(x1, y0 + sign * first, y1)

    def stamp(
        self, canvas: Canvas, left: int, top: int, role: Role, pattern: int = SOLID, *, is_joined: bool = True
    ) -> None:
        """Put the layer on a canvas with its first cell at (left, top), over what is there, braille joined.

        Without `is_joined` a faint line below gives way where this one is, and only such a one.
        """
        width = self.width
        for cell, mask in enumerate(self._masks):
            if not mask:
                continue
            x, y = left + cell % width, top + cell // width
            shown = _thin(mask, cell % width, pattern)
            under = ord(canvas.char(x, y) or " ") - BLANK
            if 0 < under < 0x100 and (is_joined or canvas.role(x, y) is not Role.MUTED):
                shown |= under
            canvas.put(x, y, chr(BLANK + shown), role)


def _thin(mask: int, x: int, pattern: int) -> int:
    """A second and third series differ by pattern, not by colour alone; no dot column that stands alone is lost."""
    if pattern == SOLID or (pattern == DASHED and x % 2 == 0):
        return mask
    return mask & _LEFT or mask & _RIGHT

"""A grid of cells, each a character with a role; charts write on it, a screen colours it, a command prints it.

Owns roles, the placing of text by display width, and the promise that every row is exactly as wide as the canvas and
holds no control character. Knows no colours and no data.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from dflash_tui.charts.cells import cells, fit, text_width
from dflash_tui.charts.tally import Tally

EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
EIGHTHS_RIGHT = " ▏▎▍▌▋▊▉█"
RIGHT_HALF = "▐"
SHADE = "░"


class Role(StrEnum):
    """What a cell means. A theme gives it a colour; the character already says the same without one."""

    TEXT = "text"
    DATA = "data"
    SECOND = "second"
    THIRD = "third"
    BAND = "band"
    AXIS = "axis"
    GRID = "grid"
    LABEL = "label"
    MUTED = "muted"
    MARK = "mark"
    FOCUS = "focus"
    GOOD = "good"
    BAD = "bad"


class Span(NamedTuple):
    """Neighbouring cells of one look. `ground` is what they stand on: a line inside a band has ground BAND."""

    text: str
    role: Role
    ground: Role | None


class Canvas:
    """`width` x `height` cells, at least 1 x 1. Writing outside is cut off, never an error.

    `inked` promises that columns from there on stay blank: a wide and mostly empty canvas then costs nothing.
    """

    def __init__(self, width: int, height: int, inked: int | None = None) -> None:
        self.width = max(1, width)
        self.height = max(1, height)
        self.tally = Tally()
        self.x_of: Callable[[int], float | None] = lambda column: None
        """What a column stands for on the x axis; None beside the plot, and where there is no such axis."""
        self._inked = self.width if inked is None else min(self.width, max(1, inked))
        rows = range(self.height)
        self._chars = [[" "] * self._inked for _ in rows]
        self._roles = [[Role.TEXT] * self._inked for _ in rows]
        self._grounds: dict[int, list[Role | None]] = {}
        """Of the rows that a band is in; most have none."""

    def char(self, x: int, y: int) -> str:
        """The character at a cell; "" on the right half of a wide one."""
        return self._chars[y][x]

    def role(self, x: int, y: int) -> Role:
        return self._roles[y][x]

    def put(self, x: int, y: int, char: str, role: Role) -> None:
        """One cell. `char` is of one cell's width and printable: text from outside goes through `write`."""
        if not (0 <= x < self._inked and 0 <= y < self.height):
            return
        row = self._chars[y]
        if row[x] == "":
            row[x - 1] = " "
        if x + 1 < self._inked and row[x + 1] == "":
            row[x + 1] = " "
        row[x] = char
        self._roles[y][x] = role

    def rule(self, x: int, y: int, width: int, char: str, role: Role) -> None:
        """The same `char` in cells side by side, all within the canvas and none part of a wide character."""
        self._chars[y][x : x + width] = [char] * width
        self._roles[y][x : x + width] = [role] * width

    def write(self, x: int, y: int, text: str, role: Role) -> None:
        """Text from a cell to the right; what would leave the canvas is cut."""
        if text.isascii() and text.isprintable():
            self._write_plain(max(0, x), y, text[max(0, -x) : max(0, self._inked - x)], role)
            return
        for column, char in enumerate(cells(text), x):
            if char == "":
                self._widen(column, y, role)
            else:
                self.put(column, y, char, role)

    def _write_plain(self, x: int, y: int, text: str, role: Role) -> None:
        """Text of narrow characters, none of them outside, in one go."""
        if not text or not 0 <= y < self.height:
            return
        row, end = self._chars[y], x + len(text)
        if row[x] == "":
            row[x - 1] = " "
        if end < self._inked and row[end] == "":
            row[end] = " "
        row[x:end] = text
        self._roles[y][x:end] = [role] * len(text)

    def write_right(self, x_end: int, y: int, text: str, role: Role) -> None:
        """Text that ends before column `x_end`."""
        self.write(x_end - text_width(text), y, text, role)

    def shade(self, x: int, y_top: int, y_bottom: int) -> None:
        """A column of a band, both rows included: a shade character, and the ground for what is drawn over it."""
        for y in range(y_top, y_bottom + 1):
            if y not in self._grounds:
                self._grounds[y] = [None] * self._inked
            self._chars[y][x] = SHADE
            self._roles[y][x] = self._grounds[y][x] = Role.BAND

    def note(self, text: str, role: Role = Role.MUTED) -> "Canvas":
        """A sentence in the middle, wrapped: what a chart says when it has nothing to draw."""
        lines = _wrap(text, self.width)
        if len(lines) > self.height:
            rest = " ".join(lines[self.height - 1 :])
            lines = [*lines[: self.height - 1], fit(rest, self.width)]
        top = (self.height - len(lines)) // 2
        for y, line in enumerate(lines, top):
            self.write((self.width - text_width(line)) // 2, y, line, role)
        return self

    def rows(self) -> list[list[Span]]:
        """Every row as spans that together are exactly `width` cells wide."""
        return [self._spans(y) for y in range(self.height)]

    def text(self) -> str:
        """The canvas as lines of plain text, without the blanks at their ends."""
        return "\n".join("".join(row).rstrip(" ") for row in self._chars)

    def _spans(self, y: int) -> list[Span]:
        chars, roles, grounds = self._chars[y], self._roles[y], self._grounds.get(y)
        ends = [*_changes(roles), len(roles)]
        if grounds:
            ends = sorted({*ends, *_changes(grounds)})
        spans: list[Span] = []
        start = 0
        for end in ends:
            spans.append(Span("".join(chars[start:end]), roles[start], grounds[start] if grounds else None))
            start = end
        if self._inked < self.width:
            spans.append(Span(" " * (self.width - self._inked), Role.TEXT, None))
        return spans

    def _widen(self, x: int, y: int, role: Role) -> None:
        """Make cell `x` the right half of the wide character before it; one cut by an edge becomes a blank."""
        if not 0 <= y < self.height:
            return
        if 0 < x < self._inked:
            self.put(x, y, " ", role)
            self._chars[y][x] = ""
        elif x == self._inked:
            self.put(x - 1, y, " ", role)
        elif x == 0:
            self.put(x, y, " ", role)


def _changes(cells: Sequence[object]) -> Iterator[int]:
    """The places of the cells that are other than the one before."""
    return compress(count(1), map(is_not, cells, cells[1:]))


def _wrap(text: str, width: int) -> list[str]:
    """Words in lines of at most `width` cells; a word that is wider is cut with an ellipsis."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(lines[-1]) + 1 + text_width(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(fit(word, width))
    return lines

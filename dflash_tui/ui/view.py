"""What a person looks at of a run: the window, the steps zoomed to within it, the x axis, the cursor.

Owns the arithmetic of zooming and panning. Values alone: nothing here asks or draws.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dflash_tui.charts.course import Course
from dflash_tui.charts.format import brief
from dflash_tui.runs import Stretches, Window
from dflash_tui.text import duration

AXES = ("step", "time", "tokens")
# The end of a zoom that goes on with the run; `report --from A` asks so too.
OPEN_END = 2**62
WHOLE_RUN = Window()
_MIN_STEPS = 8


class Extent(NamedTuple):
    """Steps from `first` to `last`, both included."""

    first: float
    last: float

    def within(self, window: Window | None) -> "Extent":
        """What of it lies in a range of steps; all of it without one."""
        if window is None or window.first is None or window.last is None:
            return self
        return Extent(max(self.first, window.first), min(self.last, window.last))


@dataclass(frozen=True, slots=True)
class View:
    """`whole` is the extent of the window when nothing is zoomed, None while nobody knows; `cursor` is a step."""

    window: Window = WHOLE_RUN
    zoom: Window | None = None
    axis: str = "step"
    cursor: float | None = None
    whole: Extent | None = None
    stretches: Stretches | None = None
    """Two windows to hold against one another, if a person chose any."""

    @property
    def asked(self) -> Window:
        """The window that the panels are asked over: what is zoomed to is real rows, not stretched ones."""
        return self.zoom or self.window

    @property
    def words(self) -> str:
        """The steps looked at, if they are not the whole run."""
        if self.zoom is None or self.zoom.first is None or self.zoom.last is None:
            return "" if self.window == WHOLE_RUN else str(self.window)
        end = "" if self.zoom.last == OPEN_END else f"{self.zoom.last:,}"
        return f"zoom {self.zoom.first:,}..{end}"

    @property
    def pair_words(self) -> str:
        """The two windows that are held against one another, if there are any."""
        return " vs ".join(f"{one.first:,}..{one.last:,}" for one in self.stretches or ())

    def place_words(self, course: Course | None) -> str:
        """Where the cursor is, or at least over what the charts are; "" over steps and without a cursor."""
        if self.cursor is None:
            return f"x {course.name}" if course else ""
        place = course.place(self.cursor) if course else None
        words = "" if place is None else duration(place) if self.axis == "time" else f"{brief(place)} {self.axis}"
        return ", ".join(filter(None, (f"cursor {self.cursor:,.0f}", words)))

    def seen(self, extent: Extent | None) -> "View":
        """The same, once its rows were seen to reach over `extent`."""
        if extent is None:
            return self
        if self.whole and (self.zoom or self.window == WHOLE_RUN):
            # A run goes on while a part of it is looked at, and panels out of sight have rows of their own.
            extent = Extent(min(self.whole.first, extent.first), max(self.whole.last, extent.last))
        return replace(self, whole=extent)

    def zoomed(self, extent: Extent, by: float, around: float | None = None) -> "View":
        """`by` times as many steps, `around` (or the cursor, else the newest step) staying where it is."""
        whole = self.whole or extent
        first, last = extent
        fixed = self.cursor if around is None else around
        fixed = last if fixed is None or not first <= fixed <= last else fixed
        size = max(_MIN_STEPS, (last - first) * by)
        share = (fixed - first) / (last - first) if last > first else 1.0
        if size >= whole.last - whole.first:
            return replace(self, zoom=None)
        return self._at(fixed - share * size, size, whole)

    def panned(self, extent: Extent, by: float) -> "View":
        """The zoom moved by this share of its width, no further than the window goes; without one, the same."""
        size = extent.last - extent.first
        return self._at(extent.first + by * size, size, self.whole or extent) if self.zoom else self

    def moved(self, steps: Sequence[float], by: int, extent: Extent) -> "View":
        """The cursor `by` of these steps further, from the newest at first; at the end of a zoom that pans along."""
        if self.cursor is None:
            at = len(steps) - 1
        else:
            at = by + (bisect_right(steps, self.cursor) - 1 if by > 0 else bisect_left(steps, self.cursor))
        view = self if 0 <= at < len(steps) else self.panned(extent, 0.5 if by > 0 else -0.5)
        return replace(view, cursor=steps[min(max(0, at), len(steps) - 1)])

    def _at(self, first: float, size: float, whole: Extent) -> "View":
        first = max(whole.first, min(first, whole.last - size))
        is_newest = first + size >= whole.last - 0.5
        begin, end = math.floor(first), math.floor(first) + math.ceil(size)
        # A cursor that is out of sight would speak of rows that nobody sees.
        cursor = self.cursor if self.cursor is not None and begin <= self.cursor <= end + 1 else None
        return replace(self, zoom=Window.between(begin, OPEN_END if is_newest else end), cursor=cursor)

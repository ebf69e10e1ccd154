"""Where the steps of a run lie in time or in tokens: another x axis for a chart over steps.

Owns the way from a step to its place and back, and the gap between two stretches of a run: a line over time is not
joined over the hours in which nothing was trained. Between two steps that are known a place is in proportion.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from dflash_tui.charts.series import Axes, Rows, named_or

Moved = tuple[list[str], list[list[object]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps in rising order, at least one, and where each lies."""

    steps: Sequence[float]
    places: Sequence[float]


@dataclass(frozen=True, slots=True)
class Course:
    """The stretches of a run in the order of their steps; `scale` is that of their places, `name` what they are."""

    name: str
    scale: str
    stretches: Sequence[Stretch]

    def place(self, step: float) -> float:
        """Where a step lies; one that is in no stretch lies at the nearest end."""
        return self._place(self._number(step), step)

    def step(self, place: float) -> float:
        """The step that lies at a place, or at the nearest end of a stretch."""
        number = max(0, bisect_right([stretch.places[0] for stretch in self.stretches], place) - 1)
        stretch = self.stretches[number]
        return _interpolated(stretch.places, stretch.steps, place)

    def along(
        self, columns: Sequence[str], rows: Rows, axes: Axes
    ) -> tuple[list[str], list[list[object]], dict[str, str]]:
        """The same chart over this axis: columns, rows and axes. An empty row stands between two stretches."""
        at = columns.index(named_or(axes, "x", columns, 0))
        moved: list[list[object]] = []
        before: int | None = None
        for row in rows:
            step = row[at]
            if not isinstance(step, (int, float)):
                continue
            number = self._number(step)
            if before is not None and number != before:
                gap: list[object] = [None] * len(columns)
                gap[at] = self.stretches[number].places[0]
                moved.append(gap)
            before = number
            moved.append([*row[:at], self._place(number, step), *row[at + 1 :]])
        names = [*columns[:at], self.name, *columns[at + 1 :]]
        return names, moved, {**axes, "x": self.name, "x_scale": self.scale}

    def _number(self, step: float) -> int:
        return max(0, bisect_right([stretch.steps[0] for stretch in self.stretches], step) - 1)

    def _place(self, number: int, step: float) -> float:
        stretch = self.stretches[number]
        return _interpolated(stretch.steps, stretch.places, step)


def _interpolated(known: Sequence[float], wanted: Sequence[float], value: float) -> float:
    after = bisect_right(known, value)
    if after == 0 or after == len(known):
        return wanted[min(after, len(known) - 1)]
    left, right = known[after - 1], known[after]
    return wanted[after - 1] + (wanted[after] - wanted[after - 1]) * (value - left) / (right - left)

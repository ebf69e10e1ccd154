"""From a value to a place on an axis: limits that fit the data, and ticks within them.

Owns limits: finite, never empty, holding every value the axis can show. The caller counts what is off the axis.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dflash_tui.charts.format import short
from dflash_tui.charts.ticks import Tick, duration_ticks, linear_ticks, log_ticks, time_ticks

KINDS = ("linear", "log", "time", "duration")

# A span below this part of its values is rounding noise (doubles hold 2e-16): drawn as the constant that it is.
_NOISE = 1e-12
_LARGEST = sys.float_info.max
_SMALLEST = math.ulp(0.0)
# Tukey calls 3 interquartile ranges far out; a young loss that still decays lies further and has no outliers.
_FENCE_IQRS = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, both finite and low < high. `only` is the value of a series that never changes."""

    kind: str
    low: float
    high: float
    is_whole: bool = False
    only: float | None = None

    def shows(self, value: float) -> bool:
        """Whether this kind of axis has a place for a finite value."""
        return self.kind != "log" or value > 0

    def places(self, values: Iterable[float | None], num_dots: int) -> list[int | None]:
        """What `placer` makes of each value, None of None: a redraw asks for thousands."""
        if self.kind == "log":
            place = self.placer(num_dots)
            return [None if value is None else place(value) for value in values]
        low, high, last = self.low, self.high, num_dots - 1
        half, half_span = low / 2, high / 2 - low / 2
        return [
            None if value is None
            else int((value / 2 - half) / half_span * last + 0.5) if low <= value <= high
            else 0 if value < low else last
            for value in values
        ]  # fmt: skip

    def placer(self, num_dots: int) -> Callable[[float], int]:
        """A function from a value that the axis shows to its dot, 0 at `low`; what lies outside goes to the edge."""
        low, high, last = self.low, self.high, num_dots - 1
        if self.kind == "log":
            start, span = math.log10(low), math.log10(high) - math.log10(low)

            def place_log(value: float) -> int:
                if low <= value <= high:
                    return int((math.log10(value) - start) / span * last + 0.5)
                return 0 if value < low else last

            return place_log
        # Halves, because the span of large doubles is infinite.
        half, half_span = low / 2, high / 2 - low / 2

        def place(value: float) -> int:
            if low <= value <= high:
                return int((value / 2 - half) / half_span * last + 0.5)
            return 0 if value < low else last

        return place

    def value(self, dot: int, num_dots: int) -> float:
        """The value in the middle of a dot: what `placer` puts there."""
        share = dot / max(1, num_dots - 1)
        if self.kind == "log":
            start = math.log10(self.low)
            # The root, because a power of ten that is too large is an error, and a product is infinite.
            root = 10 ** ((start + share * (math.log10(self.high) - start)) / 2)
            return float(min(self.high, max(self.low, root * root)))
        return self.low * (1 - share) + self.high * share

    def ticks(self, num_max: int) -> Sequence[Tick]:
        """About `num_max` round values with their labels, no two alike; the only value of a constant series."""
        only = self.only
        if only is not None:
            if self.kind in ("linear", "log"):
                return [Tick(only, short(only))]
            return [min(self._round_values(3), key=lambda tick: abs(tick.value - only))]
        return self._round_values(num_max)

    def _round_values(self, num_max: int) -> Sequence[Tick]:
        if self.kind == "log":
            return log_ticks(self.low, self.high, num_max)
        if self.kind == "duration":
            return duration_ticks(self.low, self.high, num_max)
        if self.kind == "time":
            return time_ticks(self.low, self.high, num_max)
        return linear_ticks(self.low, self.high, num_max, self.is_whole)


def fit_scale(kind: str, values: Iterable[float]) -> Scale | None:
    """The axis whose ends are the least and the greatest of the finite values it can show; None if there are none."""
    shown = [v for v in values if math.isfinite(v) and (kind != "log" or v > 0)]
    if not shown:
        return None
    low, high = min(shown), max(shown)
    largest = max(abs(low), abs(high))
    if high / 2 - low / 2 > max(largest * _NOISE, sys.float_info.min):
        return Scale(kind, low, high, is_whole=all(v % 1 == 0 for v in shown))
    if kind == "log":
        return Scale(kind, max(low / 2, _SMALLEST), min(high * 2, _LARGEST), only=low)
    if kind in ("time", "duration") or largest < sys.float_info.min:
        pad = max(1.0, 2 * largest * _NOISE)
    else:
        pad = largest / 10
    return Scale(kind, max(low - pad, -_LARGEST), min(high + pad, _LARGEST), only=low)


def inliers(values: list[float]) -> list[float]:
    """The values within the fences around the middle half; all of them when the middle half is one value."""
    if not values:
        return values
    ordered = sorted(values)
    first, third = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    reach = _FENCE_IQRS * (third - first)
    return [v for v in values if first - reach <= v <= third + reach] if reach else values

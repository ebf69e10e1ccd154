"""Round numbers between two limits, with labels that were chosen for the whole axis.

Owns which values get a tick on a linear, a log and a clock axis. Knows neither dots nor cells.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from dflash_tui.charts.format import SUFFIXES, axis_labels, scientific

# Limits are doubles (17 digits) of up to 10^308, and a step may be 10^-12 of them.
_EXACT = Context(prec=40, Emin=-999999, Emax=999999)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_CLOCK_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(m * _MINUTE for m in (1, 2, 5, 10, 15, 30)),
    *(h * _HOUR for h in (1, 2, 3, 6, 12)),
    *(d * _DAY * 10**power for power in range(8) for d in (1, 2, 5)),
)
# Seconds in a unit, its letter, and from how many seconds on an axis is better read in it than in the next smaller one.
_UNITS = ((_DAY, "d", 4 * _DAY), (_HOUR, "h", 2 * _HOUR), (_MINUTE, "m", 2 * _MINUTE), (1, "s", 0))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_799  # of the year 9999, where datetime ends


class Tick(NamedTuple):
    value: float
    label: str


# The charts of a dashboard stand over the same steps.
@lru_cache(maxsize=128)
def linear_ticks(low: float, high: float, num_max: int, is_whole: bool = False) -> Sequence[Tick]:
    """Multiples of 1, 2 or 5 x 10^n: as many as `num_max` allows, but two where one step more gives them."""
    best: tuple[range, int, int] | None = None
    for digit, exponent in _steps(low, high):
        multiples = _multiples(low, high, digit, exponent)
        is_enough = best is not None and len(best[0]) > 1
        if (is_whole and exponent < 0) or (is_enough and len(multiples) > num_max):
            break
        best = multiples, digit, exponent
        if len(multiples) > max(1, num_max):
            break
    if best is None:
        return ()
    multiples, digit, exponent = best
    numerators = [k * digit for k in multiples]
    labels = axis_labels(numerators, exponent)
    return tuple(Tick(float(f"{n}e{exponent}"), label) for n, label in zip(numerators, labels, strict=True))


def log_ticks(low: float, high: float, num_max: int) -> Sequence[Tick]:
    """Powers of ten, every second, third... of them if there are many; 1, 2, 5 between few; linear within one."""
    first, last = math.log10(low), math.log10(high)
    decades = range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)
    if len(decades) > 1:
        stride = -(-len(decades) // max(2, num_max))
        kept = [d for d in decades if d % stride == 0]
        # Of three decades every second may be one: then the first and the last.
        kept = kept if len(kept) > 1 else list(decades[::stride])
        return [Tick(float(f"1e{d}"), _power_label(1, d)) for d in kept]
    finer = [
        (digit, exponent)
        for exponent in range(math.floor(first), math.floor(last) + 1)
        for digit in (1, 2, 5)
        if first - 1e-9 <= math.log10(digit) + exponent <= last + 1e-9
    ]
    if 2 <= len(finer) <= max(3, num_max):
        return [Tick(float(f"{digit}e{exponent}"), _power_label(digit, exponent)) for digit, exponent in finer]
    return linear_ticks(low, high, num_max)


def duration_ticks(low: float, high: float, num_max: int) -> Sequence[Tick]:
    """Seconds since a start, at whole seconds, minutes, hours or days: 0, 30m, 1h 00m, 1h 30m."""
    return _clock_ticks(low, high, num_max, _duration_label)


def time_ticks(low: float, high: float, num_max: int) -> Sequence[Tick]:
    """Unix seconds as UTC: 14:30, 11-29 14:30 when days differ, 11-29 at steps of days, with the year when years do."""
    if low < 0 or high > _LAST_SECOND:
        return linear_ticks(low, high, num_max)
    years_differ = _moment(low).year != _moment(high).year
    days_differ = _moment(low).date() != _moment(high).date()

    def label(second: int, step: int, _: int) -> str:
        clock = "" if step >= _DAY else "%H:%M" if step >= _MINUTE else "%H:%M:%S"
        date = "%Y-%m-%d" if years_differ else "%m-%d" if days_differ or not clock else ""
        return _moment(second).strftime(f"{date} {clock}".strip())

    return _clock_ticks(low, high, num_max, label)


def _clock_ticks(low: float, high: float, num_max: int, label: Callable[[int, int, int], str]) -> Sequence[Tick]:
    num_max = max(2, num_max)
    seconds, step = range(0), 1
    if max(abs(low), abs(high)) < _CLOCK_STEPS[-1]:
        for step in _CLOCK_STEPS:
            seconds = range(math.ceil(low / step) * step, math.floor(high / step) * step + 1, step)
            if len(seconds) <= num_max:
                break
    if len(seconds) < 2:  # less than a second apart, or longer than calendars
        return [Tick(t.value, t.label if t.value == 0 else t.label + "s") for t in linear_ticks(low, high, num_max)]
    largest = max(abs(seconds[0]), abs(seconds[-1]))
    return [Tick(float(s), label(s, step, largest)) for s in seconds]


def _duration_label(second: int, step: int, largest: int) -> str:
    """All labels of an axis go from the same first unit, which `largest` decides, to the same last, from `step`."""
    if second == 0:
        return "0"
    last = next(i for i, (size, _, _) in enumerate(_UNITS) if step >= size)
    first = next(i for i, (_, _, worth_it) in enumerate(_UNITS) if i == last or largest >= worth_it)
    parts: list[str] = []
    rest = abs(second)
    for size, name, _ in _UNITS[first : last + 1]:
        num, rest = divmod(rest, size)
        parts.append(f"{num:02d}{name}" if parts else f"{num:,}{name}")
    return ("-" if second < 0 else "") + " ".join(parts)


def _moment(second: float) -> datetime:
    return _EPOCH + timedelta(seconds=math.floor(second))


def _steps(low: float, high: float) -> Iterator[tuple[int, int]]:
    """Steps from the span downwards: (5, 1), (2, 1), (1, 1), (5, 0)... for 50, 20, 10, 5."""
    span = _EXACT.subtract(Decimal(high), Decimal(low))
    top = span.adjusted() + 1
    for exponent in range(top, top - 20, -1):
        for digit in (5, 2, 1):
            yield digit, exponent


def _multiples(low: float, high: float, digit: int, exponent: int) -> range:
    """The k with low <= k x step <= high, a millionth of a step allowed for the rounding of doubles."""
    step = Decimal((0, (digit,), exponent))
    slack = Decimal("1e-6")
    first = _EXACT.subtract(_EXACT.divide(Decimal(low), step), slack)
    last = _EXACT.add(_EXACT.divide(Decimal(high), step), slack)
    return range(
        int(first.to_integral_value(rounding=ROUND_CEILING)), int(last.to_integral_value(rounding=ROUND_FLOOR)) + 1
    )


def _power_label(digit: int, exponent: int) -> str:
    if -4 < exponent < 3:
        return axis_labels([digit], exponent)[0]
    if 3 <= exponent < 15:
        unit = exponent // 3 * 3
        return f"{digit * 10 ** (exponent - unit)}{SUFFIXES[unit]}"
    return scientific(digit, exponent)

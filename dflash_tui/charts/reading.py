"""What a chart says at one place of its x axis, in words.

Owns which row that is, and which of its columns: the lines, and the band around the first.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dflash_tui.charts.format import ABSENT, number
from dflash_tui.charts.series import Axes, Rows, named, named_or, numbers


class Reading(NamedTuple):
    """The row at a place: its own x, and its values as parts to put side by side, the most telling first."""

    x: float
    parts: list[str]


def read_at(columns: Sequence[str], rows: Rows, axes: Axes, x: float) -> Reading | None:
    """What stands at the last row whose x is not above `x`; None left of them all. Rows are in the order of x."""
    name_of_x = named_or(axes, "x", columns, 0)
    at = row_at(columns, rows, name_of_x, x)
    if at is None:
        return None
    row = rows[at : at + 1]
    first, *others = [*(named(axes, "y") or [named_or(axes, "y", columns, 1)]), *named(axes, "y2")]
    parts = [f"{first} {number(numbers(columns, row, first)[0])}"]
    parts += [f"{name} {number(value)}" for name in others if (value := numbers(columns, row, name)[0]) is not None]
    if "low" in axes and "high" in axes:
        low, high = (number(numbers(columns, row, axes[key])[0]) for key in ("low", "high"))
        if low != ABSENT:
            parts.append(f"{axes['low']}-{axes['high']} {low}-{high}")
    if "n" in columns:
        parts.append(f"n {number(row[0][columns.index('n')])}")
    return Reading(numbers(columns, row, name_of_x)[0] or 0.0, parts)


def row_at(columns: Sequence[str], rows: Rows, name: str, x: float) -> int | None:
    """The last row whose column `name` is not above `x`."""
    xs = numbers(columns, rows, name)
    return next((i for i in range(len(xs) - 1, -1, -1) if (here := xs[i]) is not None and here <= x), None)

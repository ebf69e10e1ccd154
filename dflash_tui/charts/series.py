"""From the rows of a panel to lists of numbers.

Owns reading of cells and of the panel's axes ("y": "p50,p90"). A number is a float, NaN and infinities included;
None is a value that is missing.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dflash_tui.charts.tally import Tally

_FLOATS = {float, type(None)}

Axes = Mapping[str, str]
Rows = Sequence[Sequence[Any]]


class ChartError(ValueError):
    """The panel's header and its SELECT give the chart something it cannot draw, such as a column that is not there."""


def to_number(cell: object) -> float | None:
    """A cell as a float; text is read, so "NaN", "Infinity" and exact decimals count as numbers; None for the rest."""
    if isinstance(cell, float):
        return cell
    if isinstance(cell, int):
        return float(cell) if cell.bit_length() < 1024 else math.inf if cell > 0 else -math.inf
    if not isinstance(cell, str):
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def numbers(columns: Sequence[str], rows: Rows, name: str) -> list[float | None]:
    """A column as numbers. Raises ChartError."""
    place = _place(columns, name)
    cells = [row[place] for row in rows]
    # Nearly all columns are of one kind: those of floats are taken as they are, those of steps in one go.
    kinds = set(map(type, cells))
    if kinds <= _FLOATS:
        return cells
    if kinds == {int}:
        with suppress(OverflowError):
            return list(map(float, cells))
    return list(map(to_number, cells))


def texts(columns: Sequence[str], rows: Rows, name: str) -> list[str]:
    """A column as text, "-" for what is missing. Raises ChartError."""
    place = _place(columns, name)
    return ["-" if row[place] is None else str(row[place]) for row in rows]


def named(axes: Axes, key: str) -> list[str]:
    """The columns that an axis names, comma-separated; none when the header does not say."""
    return [name.strip() for name in axes.get(key, "").split(",") if name.strip()]


def named_or(axes: Axes, key: str, columns: Sequence[str], place: int) -> str:
    """The column of an axis, by default the one at `place`. Raises ChartError when there is none."""
    names = named(axes, key)
    if names:
        return names[0]
    if place < len(columns):
        return columns[place]
    raise ChartError(f"no column for {key}: the chart needs {place + 1}, the query gives {len(columns)}")


def sort_out(values: Sequence[float | None], is_log: bool, tally: Tally) -> list[float | None]:
    """The values that can be drawn, None for all others, each counted once."""
    present = [value for value in values if value is not None and math.isfinite(value)]
    if len(present) == len(values) and not (is_log and min(present, default=1.0) <= 0):
        tally.num_drawn += len(present)
        return [*present]
    drawable: list[float | None] = []
    for value in values:
        if value is None:
            tally.num_missing += 1
        elif not math.isfinite(value):
            tally.num_non_finite += 1
        elif is_log and value <= 0:
            tally.num_off_log += 1
        else:
            tally.num_drawn += 1
            drawable.append(value)
            continue
        drawable.append(None)
    return drawable


def _place(columns: Sequence[str], name: str) -> int:
    try:
        return columns.index(name)
    except ValueError:
        raise ChartError(f"no column {name!r}; the query gives {', '.join(columns)}") from None

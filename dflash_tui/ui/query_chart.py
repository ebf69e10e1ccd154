"""An answer as a chart, its axes guessed from names and types: what a panel of it would draw. Pure, for a thread.

Few enough rows are given to the chart that drawing them holds up no key, and none of their peaks is lost.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from dflash_tui.charts.series import to_number
from dflash_tui.output.values import is_number, plain
from dflash_tui.store.base import PanelResult, Row
from dflash_tui.ui.result_cells import shown

View = Literal["table", "line", "bars", "hist"]
VIEWS: tuple[View, ...] = ("table", "line", "bars", "hist")
_X_NAMES = ("step", "time", "bucket", "epoch", "attempt", "line_no")
_BANDS = (("p10", "p90"), ("low", "high"), ("p25", "p75"), ("min", "max"))
_MOST_LINES = 3
_MOST_BARS = 200
_NUM_BINS = 40
# How far apart the middles of two columns may be to share an axis.
_SAME_AXIS = 20.0


def chart_of(
    view: View, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], chosen: int, buckets: int
) -> PanelResult | str:
    """The answer drawn as `view`, of the column `chosen` if it can be; else a sentence on what is missing."""
    numeric = [index for index, kind in enumerate(types) if is_number(kind)]
    if not numeric:
        return "no column of this answer is one of numbers"
    if view == "hist":
        worth = _values(columns, numeric)
        return _histogram(columns, rows, chosen if chosen in worth else worth[0])
    if view == "bars":
        return _bars(columns, types, rows, numeric, chosen)
    return _lines(columns, rows, numeric, chosen, buckets)


def axes_of(view: View, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], chosen: int) -> str:
    """The line `chart:` of a panel that asks the same; a table where the view needs other rows than these."""
    drawn = chart_of(view, columns, types, rows, chosen, 100) if view in ("line", "bars") else ""
    if isinstance(drawn, str) or not all(
        name.isidentifier() for names in drawn.axes.values() for name in names.split(",")
    ):
        return "table"
    return " ".join([drawn.chart, *(f"{axis}={column}" for axis, column in drawn.axes.items())])


def _values(columns: Sequence[str], numeric: list[int]) -> list[int]:
    """The columns worth drawing over another: all that are no x."""
    return [index for index in numeric if columns[index] not in _X_NAMES] or numeric


def _lines(
    columns: Sequence[str], rows: Sequence[Row], numeric: list[int], chosen: int, buckets: int
) -> PanelResult | str:
    if len(numeric) < 2:
        return "a line needs two columns of numbers, the first of which is its x"
    x = next((index for name in _X_NAMES for index in numeric if columns[index] == name), numeric[0])
    if x and columns[x] not in _X_NAMES:
        return "a line needs a column of numbers first, or one called step or time, for its x"
    others = [index for index in numeric if index != x]
    band = next(((low, high) for low, high in _BANDS if {low, high} <= {columns[index] for index in others}), None)
    inner = [index for index in others if not band or columns[index] not in band] or others
    points = _points(rows, x, others)
    if not points:
        return f"no row has a number in {columns[x]}"
    if chosen in others:
        drawn = [chosen]
    else:
        first, *more = inner
        middle = _middle(point[1 + others.index(first)] for point in points)
        near = [index for index in more if _is_near(middle, _middle(p[1 + others.index(index)] for p in points))]
        drawn = [first, *near][:_MOST_LINES]
    axes = {"x": columns[x], "y": ",".join(columns[index] for index in drawn)}
    kind = "line"
    if band and chosen not in others:
        kind, axes = "band", {**axes, "low": band[0], "high": band[1]}
    names = [columns[x], *(columns[index] for index in others)]
    return _result(kind, names, thinned(points, buckets), axes)


def _points(rows: Iterable[Row], x: int, others: list[int]) -> list[list[float | None]]:
    """The rows with a place on the x axis, from left to right."""
    points = []
    for row in rows:
        place = to_number(row[x])
        if place is not None and math.isfinite(place):
            points.append([place, *(to_number(row[index]) for index in others)])
    return sorted(points, key=lambda point: point[0] or 0.0)


def thinned(points: list[list[float | None]], buckets: int) -> list[list[float | None]]:
    """Of each of `buckets` stretches the rows with the least and the greatest value of every column."""
    if len(points) <= 2 * buckets:
        return points
    size = -(-len(points) // buckets)
    kept: list[list[float | None]] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        places = {0}
        for column in range(1, len(stretch[0])):
            there = [(value, place) for place, point in enumerate(stretch) if (value := point[column]) is not None]
            finite = [one for one in there if math.isfinite(one[0])]
            places |= {min(finite)[1], max(finite)[1]} if finite else set()
            places |= {place for value, place in there if not math.isfinite(value)}
        kept += [stretch[place] for place in sorted(places)]
    return kept


def _middle(values: Iterable[float | None]) -> float:
    there = sorted(value for value in values if value is not None and math.isfinite(value))
    return abs(there[len(there) // 2]) if there else 0.0


def _is_near(a: float, b: float) -> bool:
    return min(a, b) > 0 and max(a, b) / min(a, b) <= _SAME_AXIS


def _bars(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], numeric: list[int], chosen: int
) -> PanelResult | str:
    label = next((index for index, kind in enumerate(types) if kind == "VARCHAR"), None)
    if label is None:
        label = next((index for name in _X_NAMES for index in numeric if columns[index] == name), 0)
    left = [index for index in _values(columns, numeric) if index != label and columns[index] != "n"]
    if not left:
        return "bars need a column of numbers beside that of their labels"
    value = chosen if chosen in left else left[0]
    names = [columns[label], columns[value]]
    shown_rows = [[shown(types[label], row[label]).text, plain(row[value])] for row in rows[:_MOST_BARS]]
    axes = {"x": names[0], "y": names[1]}
    if "n" in columns and columns.index("n") != label:
        place = columns.index("n")
        names, axes = [*names, "n"], {**axes, "n": "n"}
        shown_rows = [[*one, plain(row[place])] for one, row in zip(shown_rows, rows, strict=False)]
    return _result("bars", names, shown_rows, axes)


def _histogram(columns: Sequence[str], rows: Iterable[Row], column: int) -> PanelResult | str:
    values = [value for row in rows if (value := to_number(row[column])) is not None]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return f"no row has a number in {columns[column]}"
    low, high = min(finite), max(finite)
    size = (high - low) / _NUM_BINS
    if not size:
        low, size = low - 0.5, 1.0 / _NUM_BINS
    counts = [0] * _NUM_BINS
    for value in finite:
        counts[min(_NUM_BINS - 1, int((value - low) / size))] += 1
    bins = [[low + size * index, low + size * (index + 1), num] for index, num in enumerate(counts)]
    headline = f"{columns[column]} · n {len(finite):,}"
    if odd := len(values) - len(finite):
        headline += f" · {odd:,} non-finite"
    return _result("hist", ["low", "high", "n"], bins, {"low": "low", "high": "high", "y": "n"}, headline)


def _result(
    kind: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], axes: dict[str, str], headline: str | None = None
) -> PanelResult:
    words = headline or f"{axes['y'].replace(',', ', ')} over {axes['x']}"
    return PanelResult(
        "result",
        "Query",
        kind,
        "rows",
        headline=words,
        columns=list(columns),
        rows=[list(row) for row in rows],
        axes=axes,
    )

"""An answer as a chart, its axes guessed from names and types: what a panel of it would draw. Pure, for a thread.

Few enough rows are given to the chart that drawing them holds up no key, and none of their peaks is lost.
"""

import math
import re
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
_SAMPLE_ROWS = 1000
_LOOKS_LIKE_A_COMMA = "\N{SINGLE LOW-9 QUOTATION MARK}"
_MOST_ODD = 4
# How far apart the middles of two columns may be to share an axis.
_SAME_AXIS = 20.0


def chart_of(
    view: View, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], chosen: int, buckets: int
) -> PanelResult | str:
    """The answer drawn as `view`, of the column `chosen` if it can be; else a sentence on what is missing."""
    columns = _told_apart(columns)
    numeric = [index for index, kind in enumerate(types) if is_number(kind)]
    if not numeric:
        return "no column of this answer is one of numbers"
    if view == "hist":
        worth = _values(columns, numeric)
        return _histogram(columns, rows, chosen if chosen in worth else worth[0])
    if view == "bars":
        return _bars(columns, types, rows, numeric, chosen)
    return _lines(columns, rows, numeric, chosen, buckets)


def _told_apart(columns: Sequence[str]) -> list[str]:
    """Names that a chart can be asked for: in `y=a,b` a comma stands between two, in `round(loss, 2)` it must not."""
    names: list[str] = []
    for column in columns:
        name = column.replace(",", _LOOKS_LIKE_A_COMMA)
        while name in names:
            name += "'"
        names.append(name)
    return names


def axes_of(view: View, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], chosen: int) -> str:
    """The line `chart:` of a panel that asks the same; a table where the view needs other rows than these."""
    drawn = chart_of(view, columns, types, rows, chosen, 100) if view in ("line", "bars") else ""
    if isinstance(drawn, str) or not all(
        columns.count(name) == 1 and re.fullmatch(r"[^\s=]+", name)
        for names in drawn.axes.values()
        for name in names.split(",")
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
    band = next(
        ([columns.index(low), columns.index(high)] for low, high in _BANDS if low in columns and high in columns), []
    )
    if chosen in others or not set(band) <= set(others):
        band = []
    drawn = [chosen] if chosen in others else _alike([index for index in others if index not in band] or others, rows)
    points = _points(rows, [x, *drawn, *band], buckets)
    if not points:
        return f"no row has a number in {columns[x]}"
    axes = {"x": columns[x], "y": ",".join(columns[index] for index in drawn)}
    if band:
        axes |= {"low": columns[band[0]], "high": columns[band[1]]}
    return _result("band" if band else "line", [columns[index] for index in (x, *drawn, *band)], points, axes)


def _alike(candidates: list[int], rows: Sequence[Row]) -> list[int]:
    """The first of them, and those that can share its axis, by the middles of their first values."""
    sample = rows[:_SAMPLE_ROWS]
    first, *more = candidates
    middle = _middle(to_number(row[first]) for row in sample)
    near = [index for index in more if _is_near(middle, _middle(to_number(row[index]) for row in sample))]
    return [first, *near][:_MOST_LINES]


def _points(rows: Sequence[Row], drawn: list[int], buckets: int) -> list[list[float | None]]:
    """The cells `drawn` of the rows whose first one is a place on the x axis, from left to right: all of them, or of
    each of `buckets` stretches those with the least and the greatest value of every column, and of those without a
    finite one the first few."""
    size = 1 if len(rows) <= 2 * buckets else -(-len(rows) // buckets)
    kept: list[list[float | None]] = []
    stretch: list[list[float | None]] = []
    for row in rows:
        point = [to_number(row[index]) for index in drawn]
        if point[0] is not None and math.isfinite(point[0]):
            stretch.append(point)
        if len(stretch) == size:
            kept += _extremes(stretch)
            stretch = []
    # Sorted last: of what is kept there is little, and an answer is mostly in the order of its x.
    return sorted(kept + _extremes(stretch), key=lambda point: point[0] or 0.0)


def _extremes(stretch: list[list[float | None]]) -> list[list[float | None]]:
    if len(stretch) < 2:
        return stretch
    places = {0}
    for column in range(1, len(stretch[0])):
        there = [(value, place) for place, point in enumerate(stretch) if (value := point[column]) is not None]
        finite = [one for one in there if math.isfinite(one[0])]
        places |= {min(finite)[1], max(finite)[1]} if finite else set()
        places |= set([place for value, place in there if not math.isfinite(value)][:_MOST_ODD])
    return [stretch[place] for place in sorted(places)]


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
    if not math.isfinite(high - low):
        return f"{columns[column]} reaches from {low:g} to {high:g}: too far for a histogram"
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

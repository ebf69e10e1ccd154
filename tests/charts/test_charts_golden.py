"""Every chart kind on the same awkward series, at three sizes. Read the golden files: they are the charts."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from dflash_tui.charts import Level, Mark, Options, draw

from .chart_golden import Golden, framed

SIZES = ((20, 6), (60, 12), (38, 10))
Values = list[float | None]
Drawing = tuple[str, list[str], list[list[Any]], dict[str, str]]


def loss(num: int) -> Values:
    """A decaying loss with a wiggle, the same on every machine."""
    return [1 + 1.9 * math.exp(-i / num * 4) + 0.04 * math.sin(i * i) for i in range(num)]


def noisy(i: int) -> float:
    return 1 + 1.9 * math.exp(-i / 20) + 0.4 * math.sin(i * i)


def with_gaps() -> Values:
    values = loss(80)
    values[30:36] = [math.nan] * 6
    values[50] = math.inf
    values[60:64] = [None] * 4
    return values


SERIES: dict[str, Values] = {
    "normal": loss(80),
    "nan_gap": with_gaps(),
    "log_with_zeros": [
        0.0 if i % 13 == 5 else -1.0 if i == 40 else 0.07 * 10 ** (1.2 * math.sin(i)) for i in range(80)
    ],
    "one_point": [2.73],
    "constant": [0.001] * 80,
    "all_zero": [0.0] * 80,
    "empty": [],
    "tiny": [8e-06 * (1 + 3 / (1 + i)) for i in range(80)],
    "huge": [2.4e18 * (1 + math.sin(i / 9)) for i in range(80)],
    "negative": [6 * math.sin(i / 12) - 3 for i in range(80)],
}


def line(values: Values) -> Drawing:
    return "line", ["step", "loss"], [[290 * i, v] for i, v in enumerate(values)], {"x": "step", "y": "loss"}


def band(values: Values) -> Drawing:
    rows = [
        [290 * i, v, None, None] if v is None or not math.isfinite(v) else [290 * i, v, v - abs(v) / 8, v + abs(v) / 3]
        for i, v in enumerate(values)
    ]
    return "band", ["step", "p50", "p10", "p90"], rows, {"x": "step", "y": "p50", "low": "p10", "high": "p90"}


def bars(values: Values) -> Drawing:
    limits = ["≤1.5k", "≤2.0k", "≤2.5k", "≤3.0k", ">3.0k", "no length"]
    # Every seventh value, from the fifth on, shows each kind of value that a series has.
    chosen = values[5::7][:6] or values
    rows = [
        [name, v, 0 if v is None else 312 + 90 * i] for i, (name, v) in enumerate(zip(limits, chosen, strict=False))
    ]
    return "bars", ["bucket", "accuracy", "n"], rows, {"x": "bucket", "y": "accuracy", "n": "n"}


def hist(values: Values) -> Drawing:
    """Twenty bins of equal width over the finite values; an empty bin has no row, as in SQL."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    positive = [v for v in finite if v > 0]
    is_log = len(positive) < len(finite) and min(finite) == -1.0
    axis = [math.log10(v) for v in positive] if is_log else finite
    low, high = (min(axis), max(axis)) if axis else (0.0, 0.0)
    step = (high - low) / 20
    counts: dict[int, int] = {}
    for v in axis:
        place = min(19, int((v - low) / step)) if step else 0
        counts[place] = counts.get(place, 0) + 1
    edge: Callable[[float], float] = (lambda x: 10**x) if is_log else (lambda x: x)
    rows: list[list[Any]] = [[edge(low + i * step), edge(low + (i + 1) * step), n] for i, n in sorted(counts.items())]
    if is_log:
        rows.append([0.0, 0.0, len(finite) - len(positive)])
    return "hist", ["low", "high", "n"], rows, {"low": "low", "high": "high", "y": "n"}


def spark(values: Values) -> Drawing:
    rows = [[290 * i, v, None if v is None else -v] for i, v in enumerate(values)]
    return "spark", ["step", "loss", "mirrored"], rows, {"x": "step", "y": "loss,mirrored"}


def stat(values: Values) -> Drawing:
    rows = [[values[-1], min(v for v in values if v is not None), "last 2,000"]] if values else []
    return "stat", ["loss", "lowest", "window"], rows, {"y": "loss"}


def table(values: Values) -> Drawing:
    rows = [[f"accuracy.{290 * i}", v, i * 1000, "median of the window"] for i, v in enumerate(values[::9])]
    return "table", ["metric", "value", "n", "note"], rows, {}


KINDS = (line, band, bars, hist, spark, stat, table)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_looks(golden: Golden, kind: Callable[[Values], Drawing], name: str) -> None:
    scale = "log" if name == "log_with_zeros" else "linear"
    chart, columns, rows, axes = kind(SERIES[name])
    text = ""
    for width, height in SIZES:
        canvas = draw(chart, columns, rows, axes, width=width, height=height, scale=scale)
        text += framed(canvas)
    golden(f"{chart}/{name}", f"{text}{canvas.tally}\n")


def test_roles(golden: Golden) -> None:
    """The same picture as letters: what a theme will colour. Two letters of a cell: its role, and what it stands on."""
    chart, columns, rows, axes = band(with_gaps())
    canvas = draw(chart, columns, rows, axes, width=38, height=10, options=Options(marks=[Mark(7500, "resumed")]))
    letters = ""
    for row in canvas.rows():
        letters += "".join(span.role[0] * len(span.text) for span in row)
        letters += "   " + "".join((span.ground or " ")[0] * len(span.text) for span in row) + "\n"
    golden("roles", framed(canvas) + letters)


def test_several_lines(golden: Golden) -> None:
    """Told apart without colour: solid, dotted, dashed, and a legend."""
    rows = [[i, math.sin(i / 9), math.cos(i / 9), i / 60 - 1] for i in range(120)]
    text = ""
    for width, height in SIZES:
        text += framed(
            draw("line", ["step", "tau", "lookup", "goal"], rows, {"y": "tau,lookup,goal"}, width=width, height=height)
        )
    golden("line/three_series", text)


def test_clipped_spike(golden: Golden) -> None:
    """One spike of 41.5 does not flatten the rest: it ends at the edge, is marked and counted."""
    rows = [[i, 41.5 if i == 70 else 0.07 + 0.02 * math.sin(i)] for i in range(100)]
    text = ""
    for width, height in SIZES:
        canvas = draw("line", ["step", "grad_norm"], rows, {"clip": "outliers"}, width=width, height=height)
        text += framed(canvas)
    golden("line/clipped_spike", f"{text}{canvas.tally}\n")


def test_cursor_and_smoothing(golden: Golden) -> None:
    """The raw line lies dotted behind the smoothed one; the cursor stands behind both."""
    rows = [[290 * i, v, v - 0.3, v + 0.9 + 0.5 * math.sin(i)] for i, v in enumerate(map(noisy, range(80)))]
    axes = {"x": "step", "y": "p50", "low": "p10", "high": "p90"}
    options = Options([Mark(7500, "resumed")], cursor=15_000, smoothing=0.9)
    text = ""
    for width, height in SIZES:
        text += framed(
            draw("band", ["step", "p50", "p10", "p90"], rows, axes, width=width, height=height, options=options)
        )
    golden("band/cursor_smoothed", text)


def test_held_against(golden: Golden) -> None:
    """A level across a line, and a target for each bar that has one."""
    streak = [[100 * i, 3.6 - 2 * math.exp(-i / 20)] for i in range(80)]
    slots = [[str(i), 0.5 * 0.8**i] for i in range(1, 6)]
    text = ""
    for width, height in SIZES:
        levels = Options(levels=[Level(12.38, "29% of story 12.38")])
        text += framed(draw("line", ["step", "mean"], streak, {}, width=width, height=height, options=levels))
        targets = Options(targets={"1": 0.92, "4": 0.375})
        text += framed(draw("bars", ["slot", "accuracy"], slots, {}, width=width, height=height, options=targets))
    golden("held_against", text)


def test_shared_limits(golden: Golden) -> None:
    """Few points where they belong on an axis that other charts share; what lies beyond is not there."""
    rows = [[step, step / 9000] for step in (0, 5000, 10_000, 15_000, 20_000)]
    text = ""
    for width, height in SIZES:
        options = Options(x_limits=(4000, 22_698), cursor=9000)
        text += framed(draw("line", ["step", "tau"], rows, {}, width=width, height=height, options=options))
    golden("line/shared_limits", text)


@pytest.mark.parametrize(("x_scale", "start"), [("duration", 0.0), ("time", 1_796_000_000.0), ("log", 1.0)])
def test_x_axes(golden: Golden, x_scale: str, start: float) -> None:
    rows = [[start + 95 * i, v] for i, v in enumerate(loss(80))]
    text = ""
    for width, height in SIZES:
        text += framed(
            draw("line", ["time", "loss"], rows, {"x_scale": x_scale}, width=width, height=height, unit="nats")
        )
    golden(f"line/x_{x_scale}", text)

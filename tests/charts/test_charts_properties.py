"""What holds for any numbers on a canvas of any size."""

import math
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from dflash_tui.charts import CHARTS, Canvas, Mark, Options, draw
from dflash_tui.charts.scale import KINDS, fit_scale

any_float = st.one_of(
    st.floats(),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e4, max_value=1e4),
    st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 26146.0, 0.001, 8e-06]),
)
cell = st.one_of(
    any_float,
    st.none(),
    st.integers(),
    st.booleans(),
    st.sampled_from(["NaN", "-Infinity", "x", 10**400, -(10**400)]),
)
label = st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["\x1b[31mred\n", "数据集", "é" * 3, "👍🏽🇩🇪"]))
sizes = st.tuples(st.integers(1, 200), st.integers(1, 60))
COLUMNS = ["step", "p50", "p10", "p90", "\x1b]0;x\x07数"]


def is_printable(text: str) -> bool:
    return not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text)


def assert_exact(canvas: Canvas, width: int, height: int) -> None:
    rows = canvas.rows()
    assert len(rows) == height
    for row in rows:
        text = "".join(span.text for span in row)
        assert sum(cell_len(span.text) for span in row) == width, repr(text)
        assert is_printable(text)
    assert is_printable(canvas.text().replace("\n", ""))


def rows_of(first: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(
        st.tuples(first, cell, cell, cell, st.one_of(label, st.lists(cell, max_size=5))).map(list), max_size=40
    )


@pytest.mark.parametrize("kind", CHARTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=sizes, scale=st.sampled_from(["linear", "log"]), unit=st.sampled_from([None, "tok/s"]))
def test_any_rows_on_any_canvas(
    kind: str, data: st.DataObject, size: tuple[int, int], scale: str, unit: str | None
) -> None:
    first = label if kind in ("bars", "table", "stat") else st.one_of(any_float, st.integers(0, 25000), st.none())
    rows = data.draw(rows_of(first))
    axes = (
        {"low": "p10", "high": "p90", "x_scale": data.draw(st.sampled_from(KINDS))} if kind in ("line", "band") else {}
    )
    if axes and data.draw(st.booleans()):
        axes |= {"y": "p50,p10", "clip": "outliers"}
    marks = data.draw(st.lists(st.builds(Mark, any_float, st.text(max_size=10)), max_size=3))
    limits = data.draw(st.one_of(st.none(), st.tuples(any_float, any_float)))
    options = Options(marks, limits, data.draw(st.one_of(st.none(), any_float)), data.draw(st.sampled_from([0, 0.9])))
    canvas = draw(kind, COLUMNS, rows, axes, width=size[0], height=size[1], scale=scale, unit=unit, options=options)
    assert_exact(canvas, *size)


@given(rows=rows_of(any_float), scale=st.sampled_from(["linear", "log"]))
def test_every_value_of_a_line_is_counted_once(rows: list[list[Any]], scale: str) -> None:
    tally = draw("line", COLUMNS, rows, {}, width=40, height=10, scale=scale).tally
    fates = tally.num_drawn + tally.num_missing + tally.num_non_finite + tally.num_off_log + tally.num_without_x
    assert fates == len(rows)
    assert tally.num_clipped == 0


@given(values=st.lists(any_float), kind=st.sampled_from(KINDS), num_dots=st.integers(1, 500))
def test_limits_are_finite_and_hold_every_value(values: list[float], kind: str, num_dots: int) -> None:
    scale = fit_scale(kind, values)
    shown = [v for v in values if math.isfinite(v) and (kind != "log" or v > 0)]
    if scale is None:
        assert not shown
        return
    assert -math.inf < scale.low < scale.high < math.inf
    assert scale.low <= min(shown) <= max(shown) <= scale.high
    place = scale.placer(num_dots)
    dots = [place(v) for v in sorted(shown)]
    assert dots == sorted(dots)
    assert 0 <= dots[0] <= dots[-1] <= num_dots - 1
    if scale.only is None:
        assert (dots[0], dots[-1]) == (0, num_dots - 1)
    assert place(scale.value(0, num_dots)) == 0
    assert num_dots == 1 or place(scale.value(num_dots - 1, num_dots)) == num_dots - 1


@given(values=st.lists(any_float, min_size=1), kind=st.sampled_from(KINDS), num_max=st.integers(1, 12))
def test_labels_of_an_axis_are_all_different(values: list[float], kind: str, num_max: int) -> None:
    scale = fit_scale(kind, values)
    if scale is None:
        return
    ticks = scale.ticks(num_max)
    labels = [tick.label for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert [tick.value for tick in ticks] == sorted(tick.value for tick in ticks)
    assert all(is_printable(text) for text in labels)
    assert scale.only is None or len(ticks) == 1
    if kind in ("linear", "log"):
        slack = (scale.high / 2 - scale.low / 2) * 1e-5
        assert all(scale.low - slack <= tick.value <= scale.high + slack for tick in ticks)
        for tick in ticks:
            assert (tick.value == 0) == (re.search("[1-9]", tick.label.split("e")[0]) is None)


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), num_max=st.integers(3, 12))
def test_a_linear_axis_has_two_ticks_and_no_more_than_asked_for(low: float, span: float, num_max: int) -> None:
    scale = fit_scale("linear", [low, low + span])
    assert scale is not None
    assert 2 <= len(scale.ticks(num_max)) <= max(num_max, 5)

"""Bars, histograms, sparks, tables and single numbers: what they may and may not say about their data."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.charts import Canvas, Role, draw, spark

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = " ▁▂▃▄▅▆▇█"


def lines(canvas: Canvas) -> list[str]:
    return canvas.text().split("\n")


def length(text: str) -> float:
    return sum(EIGHTHS.index(c) / 8 for c in text if c in EIGHTHS[1:])


def bars(rows: list[list[Any]], **more: Any) -> Canvas:
    size = {"width": 60, "height": 12, **more}
    return draw("bars", ["bucket", "accuracy", "n"][: len(rows[0])] if rows else ["bucket", "y"], rows, {}, **size)


def test_bars_are_as_long_as_their_values() -> None:
    shown = lines(bars([["a", 0.4, 10], ["b", 0.3, 20], ["c", 0.1, 30]]))[::2]
    lengths = [length(row) for row in shown[:3]]
    assert lengths[1] / lengths[0] == pytest.approx(0.75, abs=0.02)
    assert lengths[2] / lengths[0] == pytest.approx(0.25, abs=0.02)
    assert [re.findall(r"0\.\d+|n=\d+", row) for row in shown[:3]] == [
        ["0.4", "n=10"],
        ["0.3", "n=20"],
        ["0.1", "n=30"],
    ]


def test_bars_say_what_is_zero_missing_or_no_number() -> None:
    shown = lines(bars([["a", 1.5, 3], ["zero", 0.0, 2], ["none", None, 0], ["bad", math.nan, 1]]))[::2]
    assert shown[1].endswith(" 0 n=2")
    assert shown[2].endswith("no value n=0")
    assert shown[3].endswith("NaN n=1")
    assert [length(row) for row in shown[1:4]] == [0, 0, 0]


def test_negative_bars_go_left_of_where_positive_ones_begin() -> None:
    shown = lines(bars([["up", 2.0], ["down", -1.0], ["hair", 1e-9]]))[::2]
    starts = [min(row.index(c) for c in row if c in "█▏▐") for row in shown[:3]]
    ends = [max(i for i, c in enumerate(row) if c in "█▏▐") for row in shown[:3]]
    assert ends[1] + 1 == starts[0] == starts[2]
    assert length(shown[1]) / length(shown[0]) == pytest.approx(0.5, abs=0.06)


def test_bars_that_do_not_fit_are_counted() -> None:
    shown = lines(bars([[f"k{i}", float(i)] for i in range(30)], height=5))
    assert len(shown) == 5
    assert shown[-1] == "… 26 more"


def test_a_narrow_canvas_keeps_the_values_of_bars() -> None:
    assert lines(bars([["short", 0.25, 312]], width=16, height=1)) == ["short █████ 0.25"]
    assert lines(bars([["a long label", 0.25, 312]], width=9, height=1)) == ["a l… 0.25"]


def hist(rows: list[list[Any]], **more: Any) -> Canvas:
    size = {"width": 60, "height": 12, **more}
    return draw("hist", ["low", "high", "n"], rows, {}, **size)


def heights(canvas: Canvas) -> list[float]:
    """The height of every column of the canvas in cells."""
    grid = ["".join(s.text if s.role is Role.DATA else " " * len(s.text) for s in row) for row in canvas.rows()]
    return [sum(HEIGHTS.index(row[x]) / 8 for row in grid) for x in range(canvas.width)]


def test_histogram_heights_are_counts_and_a_hole_stays_a_hole() -> None:
    counts = {0: 80, 1: 40, 2: 1, 5: 20}
    found = heights(hist([[float(i), i + 1.0, n] for i, n in counts.items()]))
    plotted = [h for h in found if h]
    top = max(plotted)
    assert {round(h / top * 80) for h in plotted} == {80, 40, 20, 1}
    assert top == 10
    by_bin = [found[5 + i * 9] for i in range(6)]
    assert by_bin[3] == by_bin[4] == 0
    assert by_bin[2] == pytest.approx(1 / 8)


def test_more_bins_than_columns_are_added_up() -> None:
    found = [h for h in heights(hist([[float(i), i + 1.0, 1] for i in range(128)], width=36)) if h]
    assert 20 < len(found) <= 33
    assert len(set(found[:-1])) == 1


def test_log_bins_are_equally_wide_and_zero_is_left_out() -> None:
    rows: list[list[Any]] = [[10.0**i, 10.0 ** (i + 1), 5] for i in range(-3, 2)]
    canvas = hist([[0.0, 1e-3, 7], *rows], scale="log")
    assert canvas.tally.num_off_log == 1
    assert "1 ≤0 off log" in canvas.text()
    assert len({h for h in heights(canvas) if h}) == 1
    assert all(label in lines(canvas)[-1] for label in ("0.001", "0.1", "10"))


def test_histograms_say_why_they_are_empty() -> None:
    assert "no rows" in hist([]).text()
    assert "0 in each of 2 bins" in hist([[0, 1, 0], [1, 2, 0]]).text()
    assert "nothing to draw: 1 without x" in hist([[None, 1, 4]]).text()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.integers(1, 60))
def test_a_rising_series_gives_a_rising_spark(values: list[float], width: int) -> None:
    blocks = spark(sorted(values), width)
    assert len(blocks) == min(width, len(values))
    assert list(blocks) == sorted(blocks)


def test_sparks_show_gaps_and_what_is_no_number() -> None:
    assert spark([1, None, 2, math.nan, 3], 5) == "▁ ▅×█"
    assert spark([1, None, 2, None, 3, None], 3) == "▁▅█"
    assert spark([0.1, 0.0, 10.0], 3, "log") == "▁ █"
    assert spark([], 5) == spark([1.0], 0) == ""
    assert spark([None, math.inf], 2) == " ×"


def test_a_spark_panel_has_a_row_for_each_column() -> None:
    rows = [[i, float(i), 10.0 - i] for i in range(11)]
    shown = lines(draw("spark", ["step", "loss", "accuracy"], rows, {}, width=40, height=2))
    assert shown[0].startswith("loss     ▁")
    assert shown[1].startswith("accuracy █")
    assert shown[0].endswith(" 10")
    assert draw("spark", ["step", "a", "b", "c"], [[1, 1, 1, 1]], {}, width=30, height=2).text().endswith("… 2 more")


VITALS = [
    ["grad_norm", "median", 0.0668, 22698, None],
    ["loss", "mean", 1.4630, 2000, "last 2,000"],
    ["noise_std", "last", math.nan, 0, None],
]
NAMES = ["metric", "stat", "value", "n", "note"]


def test_tables_align_numbers_right_and_text_left() -> None:
    assert lines(draw("table", NAMES, VITALS, {}, width=60, height=4)) == [
        "metric     stat      value       n  note",
        "grad_norm  median  0.06680  22,698  -",
        "loss       mean      1.463   2,000  last 2,000",
        "noise_std  last        NaN       0  -",
    ]


@given(width=st.integers(1, 60), height=st.integers(1, 6))
def test_a_number_is_shown_whole_or_not_at_all(width: int, height: int) -> None:
    def numbers_at(columns: int) -> set[str]:
        text = draw("table", NAMES, VITALS, {}, width=columns, height=height).text()
        return set(re.findall(r"[\d.,]*\d", re.sub(r"last.*|… .*| \+\d", "", text)))

    assert numbers_at(width) <= numbers_at(200)
    alone = draw("table", ["step"], [[22698]], {}, width=width, height=2).text().split("\n")[1].strip()
    assert alone == ("22,698" if width >= 6 else "…")


def test_a_figure_that_does_not_exist_is_a_dash(data: Path) -> None:
    sets = json.loads((data / "cases" / "case29_small_n.expected.json").read_text())["sets"]
    rows = [[name, row["n"], row["p95"], row["std_sample"]] for name, row in sets.items()]
    shown = [row.split() for row in lines(draw("table", ["set", "n", "p95", "std"], rows, {}, width=60, height=7))]
    assert shown[1] == ["n1", "1", "3", "-"]
    assert shown[3] == ["n4", "4", "3.850", "1.291"]


def test_columns_that_do_not_fit_leave_a_sign() -> None:
    assert lines(draw("table", NAMES, VITALS, {}, width=30, height=4))[0].endswith(" +2")
    assert lines(draw("table", NAMES, VITALS, {}, width=39, height=3))[-1] == "… 2 more rows"
    assert "…" in lines(draw("table", NAMES, VITALS, {}, width=5, height=4))[1]


def test_words_of_a_table_give_way_before_the_heads_of_its_numbers_and_columns_go_whole() -> None:
    lengths = [["short < 1500", None, None, 0], ["mid 1500..3000", 0.2559, 3.636, 1078]]
    assert lines(draw("table", ["tokens", "accuracy", "streak8", "n"], lengths, {}, width=35, height=3)) == [
        "tokens     accuracy  streak8      n",
        "short < …         -        -      0",
        "mid 1500…    0.2559    3.636  1,078",
    ]
    windows = [["loss", 1.454, 1.321, -9.1, -0.13, 2000], ["tok_per_sec", 26_146.2, 26_150.1, 0.0, 3.9, 2000]]
    heads = lines(draw("table", ["metric", "a", "b", "pct", "delta", "n_a"], windows, {}, width=35, height=3))[0]
    assert heads.split() == ["metric", "a", "b", "pct", "+2"]


def test_lists_in_a_table_are_sparks() -> None:
    text = draw("table", ["metric", "trend"], [["loss", [3.0, 2.0, 1.0]], ["acc", None]], {}, width=30, height=3).text()
    assert text == "metric  trend\nloss    █▅▁\nacc     -"


def test_a_wide_table_has_no_limit() -> None:
    rows = [[i, "x" * 3000] for i in range(500)]
    canvas = draw("table", ["i", "text"], rows, {}, width=100_000, height=501)
    assert lines(canvas)[-1] == "499  " + "x" * 3000


def test_hostile_cells_stay_in_their_row() -> None:
    canvas = draw("table", ["a\nb", "c"], [["\x1b[2J\r\nx", 1], ["数据", 2]], {}, width=20, height=3)
    assert lines(canvas) == ["a�b      c", "�[2J��x  1", "数据     2"]


def test_a_stat_is_the_first_row() -> None:
    canvas = draw(
        "stat", ["eta_h", "steps left", "at"], [[15.2, 46302, "26,146 tok/s"]], {}, width=30, height=4, unit="h"
    )
    assert lines(canvas)[:3] == ["15.20 h", "steps left  46,302", "at          26,146 tok/s"]
    assert canvas.rows()[0][0].role is Role.DATA
    assert "no rows" in draw("stat", ["x"], [], {}, width=30, height=4).text()

"""What a line chart may and may not say about its data."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.charts import Canvas, Level, Mark, Options, Role, draw

Cell = float | None


def line(values: list[Cell], *, width: int = 60, height: int = 12, **more: Any) -> Canvas:
    rows = [[float(i), v] for i, v in enumerate(values)]
    axes = more.pop("axes", {})
    return draw("line", ["step", "loss"], rows, axes, width=width, height=height, **more)


def is_braille(char: str) -> bool:
    return "\u2800" < char <= "\u28ff"


def columns_with_dots(canvas: Canvas) -> set[int]:
    return {x for text in canvas.text().split("\n")[1:] for x, char in enumerate(text) if is_braille(char)}


def dots_in(text: str) -> int:
    return sum((ord(char) - 0x2800).bit_count() for char in text if is_braille(char))


def test_nonfinite_values_are_counted_shown_and_break_the_line(data: Path) -> None:
    values = [float(v) for v in json.loads((data / "cases" / "case33_nonfinite_axis.json").read_text())]
    expected = json.loads((data / "cases" / "case33_nonfinite_axis.expected.json").read_text())
    canvas = line(values)
    assert canvas.tally.num_drawn == expected["n_drawn"]
    assert canvas.tally.num_non_finite == expected["nonfinite_shown"]
    text = canvas.text()
    assert "3 NaN/Inf" in text
    assert text.count("×") == 3
    # Every finite value has a gap on both sides: four blobs of four dots, and nothing that joins them.
    assert dots_in(text) == 16


@pytest.mark.parametrize(
    ("names", "unit", "width", "head"),
    [
        (["p50", "mean"], "nats", 35, "nats  ⠒⠒ p50  ⠂⠂ mean   2 clipped ▲"),
        (["tau_linear_macro", "lookup_tau_macro"], "tokens", 35, "tokens  ⠒⠒ tau_linea…  ⠂⠂ lookup_t…"),
        (["tau_linear_macro", "lookup_tau_macro"], "tokens", 20, "⠒⠒ tau_l…  ⠂⠂ looku…"),
        (["p50", "max"], "", 35, "⠒⠒⠒⠒ p50  ⠂⠂⠂⠂ max"),
    ],
)
def test_a_legend_shortens_all_its_names_and_loses_none(names: list[str], unit: str, width: int, head: str) -> None:
    is_clipped = "clipped" in head
    rows = [[i, 41.5 if is_clipped and i == 30 else i % 7, i % 5 + 40 * (is_clipped and i == 9)] for i in range(60)]
    axes = {"y": ",".join(names), "clip": "outliers"}
    canvas = draw("line", ["step", *names], rows, axes, width=width, height=12, unit=unit)
    assert canvas.text().split("\n")[0] == head


@pytest.mark.parametrize(("low", "high"), [(0.07, 41.5), (0.15, 0.45), (0.03, 300.0), (0.9, 9.9), (1e-300, 1e-297)])
@pytest.mark.parametrize("height", [5, 6, 8])
def test_a_log_axis_has_two_labels_at_least(low: float, high: float, height: int) -> None:
    rows = line([low, high], height=height, scale="log").text().split("\n")
    assert len([row for row in rows if "┤" in row]) >= 2


def test_what_is_bad_is_marked_so_and_lies_over_what_is_not() -> None:
    marks = [Mark(20, "", "✖", is_bad=True), Mark(20.1, "", "▲"), Mark(40, "", "▲")]
    axis = line([float(i % 7) for i in range(60)], options=Options(marks=marks)).rows()[-2]
    assert [(span.text, span.role) for span in axis if span.text in "✖▲"] == [("✖", Role.BAD), ("▲", Role.MARK)]


def test_forty_resumes_leave_the_plot_to_be_seen() -> None:
    marks = [Mark(i + 10, f"attempt {i + 2}") for i in range(40)]
    rows = line([float(i % 7) for i in range(60)], width=40, options=Options(marks=marks)).text().split("\n")
    assert 4 <= max(row.count("┊") for row in rows[:9]) <= 8
    assert rows[-2].count("┴") > 20, "the x axis has them all"


def test_the_row_of_a_level_is_labelled_by_its_value() -> None:
    rows = line([0.1, 3.6], height=6, options=Options(levels=[Level(12.4, "story")])).text().split("\n")
    assert next(row for row in rows if "╌╌╌╌╌╌" in row).startswith("12.4┤")
    assert "10┤" not in "".join(rows)


@pytest.mark.parametrize("hole", [None, math.nan, math.inf])
def test_a_gap_is_never_bridged(hole: Cell) -> None:
    values: list[Cell] = [1.0 + i / 50 for i in range(60)]
    values[20:40] = [hole] * 20
    filled = columns_with_dots(line([1.0 + i / 50 for i in range(60)]))
    broken = columns_with_dots(line(values))
    missing = sorted(filled - broken)
    assert missing == list(range(missing[0], missing[-1] + 1))
    # 21 of 59 steps lie in the gap; the cells at its two ends still hold the last dots of the line.
    assert len(missing) == pytest.approx(len(filled) * 21 / 59, abs=2)


def test_extremes_touch_the_first_and_the_last_row() -> None:
    rows = line([5.0, 1.0, 9.0, 5.0]).text().split("\n")[:10]
    body = [row.split("│")[-1].split("┤")[-1] for row in rows]
    assert any(is_braille(c) and (ord(c) - 0x2800) & 0x09 for c in body[0])
    assert any(is_braille(c) and (ord(c) - 0x2800) & 0xC0 for c in body[-1])


def test_a_point_on_its_own_can_be_seen() -> None:
    assert dots_in(line([2.73]).text()) == 4
    assert dots_in(line([1.0, 2.0, None, 1.5, None, 1.0, 2.0], width=40).text()) > 4


def test_a_log_axis_leaves_out_what_it_cannot_show_and_says_so() -> None:
    canvas = line([0.1, 0.0, 10.0, -3.0, 1.0], scale="log")
    assert (canvas.tally.num_drawn, canvas.tally.num_off_log) == (3, 2)
    assert "2 ≤0 off log" in canvas.text()
    assert "nothing to draw: 2 ≤0 off log" in line([0.0, -1.0], scale="log").text()


def test_nothing_to_draw_is_said_with_its_reason() -> None:
    assert "no rows" in line([]).text()
    assert "nothing to draw: 2 NaN/Inf · 1 missing" in line([math.nan, math.inf, None]).text()


def test_rows_without_a_place_on_x_are_counted() -> None:
    rows = [[None, 1.0], [math.nan, 2.0], [3.0, 3.0], [4.0, 4.0]]
    canvas = draw("line", ["step", "loss"], rows, {}, width=60, height=12)
    assert (canvas.tally.num_without_x, canvas.tally.num_drawn) == (2, 2)
    assert "2 without x" in canvas.text()


def band(rows: list[list[Cell]], **more: Any) -> Canvas:
    axes = {"x": "step", "y": "p50", "low": "p10", "high": "p90"}
    return draw("band", ["step", "p50", "p10", "p90"], rows, axes, width=60, height=12, **more)


def test_a_band_is_shaded_by_characters_and_lies_behind_the_line() -> None:
    canvas = band([[i, 2.0, 1.0, 3.0] for i in range(10)])
    assert canvas.text().count("░") > 300
    over = [span for row in canvas.rows() for span in row if span.role is Role.DATA]
    assert over
    assert {span.ground for span in over} == {Role.BAND}


def test_a_band_has_the_gap_of_its_edges() -> None:
    whole = band([[i, 2.0, 1.0, 3.0] for i in range(60)]).text()
    holes = [[i, 2.0, 1.0, 3.0] if not 20 <= i < 40 else [i, 2.0, math.nan, 3.0] for i in range(60)]
    broken = band(holes).text()
    # 21 of 59 steps have no band; the line goes on there.
    assert broken.count("░") == pytest.approx(whole.count("░") * 38 / 59, rel=0.06)
    assert dots_in(broken) == dots_in(whole)


def test_a_thin_band_keeps_a_cell() -> None:
    rows: list[list[Cell]] = [[i, 9.0 if i == 0 else None, 5.0, 5.001] for i in range(60)]
    assert band([*rows, [60, 0.0, None, None]]).text().count("░") > 50


def test_a_band_from_zero_reaches_down_on_a_log_axis() -> None:
    rows: list[list[Cell]] = [[i, 1.0, 0.0, 10.0] for i in range(10)]
    lines = band([*rows, [10, 0.01, None, None]], scale="log").text().split("\n")
    assert "░" in lines[9]


def test_marks_stand_at_their_x_with_a_label() -> None:
    values: list[Cell] = [1.0 + i / 100 for i in range(100)]
    marks = [Mark(25.0, "resumed"), Mark(1000.0, "outside"), Mark(math.nan, "nowhere")]
    lines = line(values, options=Options(marks=marks)).text().split("\n")
    first = lines[0].index("│") + 1
    place = lines[0].index("┊")
    assert place - first == pytest.approx((60 - first) * 25 / 99, abs=1)
    assert lines[0][place:].startswith("┊resumed  ")
    assert lines[10][place] == "┴"
    assert all(row[place] == "┊" or is_braille(row[place]) for row in lines[:10])
    assert "outside" not in "".join(lines)


def test_outliers_are_clipped_marked_and_counted_only_on_request() -> None:
    values: list[Cell] = [1.0 + i % 7 / 10 for i in range(50)]
    values[30] = 41.5
    values[31] = -41.5
    clipped = line(values, axes={"clip": "outliers"})
    assert clipped.tally.num_clipped == 2
    assert "▲" in clipped.text().split("\n")[1]
    assert "▼" in clipped.text()
    assert clipped.text().split("\n")[0].endswith("2 clipped ▲")
    whole = line(values)
    assert whole.tally.num_clipped == 0
    assert "clipped" not in whole.text()
    # The line without the outliers uses the whole height; with them it is one row in the middle.
    assert dots_in(clipped.text()) > 3 * dots_in(whole.text())


def test_several_series_have_a_legend_and_different_patterns() -> None:
    rows = [[i, 1.0, 2.0] for i in range(50)]
    canvas = draw("line", ["step", "tau", "lookup"], rows, {"y": "tau, lookup"}, width=60, height=12)
    assert canvas.text().startswith("⠒⠒⠒⠒ tau  ⠂⠂⠂⠂ lookup")
    by_role = {role: "".join(s.text for row in canvas.rows()[1:] for s in row if s.role is role) for role in Role}
    assert dots_in(by_role[Role.DATA]) == pytest.approx(2 * dots_in(by_role[Role.SECOND]), abs=2)
    same = draw("line", ["step", "tau", "lookup"], rows, {"y": "tau", "y2": "lookup"}, width=60, height=12)
    assert same.text() == canvas.text()


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"x": "stp"}, "no column 'stp'; the query gives step, loss"),
        ({"y": "loss,p50"}, "no column 'p50'; the query gives step, loss"),
        ({"low": "p10", "high": "loss"}, "no column 'p10'; the query gives step, loss"),
        ({"y": "loss,loss,loss,loss"}, "y names 4 columns; a line chart tells 3 apart"),
    ],
)
def test_a_wrong_header_is_a_sentence_on_the_canvas(axes: dict[str, str], said: str) -> None:
    assert said in line([1.0, 2.0], axes=axes).text()


def test_a_query_of_one_column_is_a_sentence() -> None:
    assert "the chart needs 2, the query gives 1" in draw("line", ["step"], [[1]], {}, width=70, height=5).text()


def test_a_small_canvas_gives_up_axes_before_data() -> None:
    values: list[Cell] = [float(i) for i in range(30)]
    assert "└" not in line(values, width=30, height=3).text()
    assert "│" not in line(values, width=8, height=12).text()
    assert is_braille(line(values, width=1, height=1).text())


@pytest.mark.parametrize("width", range(12, 120, 3))
def test_labels_of_the_x_axis_keep_apart(width: int) -> None:
    rows = [[1000.0 * i, float(i)] for i in range(24)]
    names = draw("line", ["", "loss"], rows, {}, width=width, height=8).text().split("\n")[-1].split()
    assert set(names) <= {"0", *(f"{k}k" for k in range(1, 24))}
    assert len(names) >= 2


def test_the_unit_is_said_where_there_is_room() -> None:
    values: list[Cell] = [1.0, 2.0]
    assert line(values, unit="tok/s").text().startswith("tok/s")
    assert "tok/s" not in line(values, unit="tok/s", height=8).text()


def test_smoothed_lines_in_one_row_of_cells_are_both_seen() -> None:
    rows = [[i, 1.0, 1.3] for i in range(50)] + [[50, 9.0, 9.0]]
    more = {"width": 60, "height": 12, "options": Options(smoothing=0.6)}
    both = draw("line", ["step", "p50", "mean"], rows, {"y": "p50,mean"}, **more).text()
    one = draw("line", ["step", "p50"], rows, {"y": "p50"}, **more).text()
    assert dots_in("\n".join(both.split("\n")[1:])) > 1.3 * dots_in(one)


def test_the_first_steps_of_a_long_run_do_not_flatten_the_rest() -> None:
    """Two humps at 0.9 and 2.7, as the story's loss has them, under a band: its width is no reason to show them all."""
    rows: list[list[Cell]] = [
        [i, 0.9 + 10 / (1 + i) + i % 5 / 50, 0.88 + 9 / (1 + i), 2.7 + 10 / (1 + i) + i % 7 / 50] for i in range(300)
    ]
    axes = {"y": "p50", "low": "p10", "high": "p90", "clip": "outliers"}
    canvas = draw("band", ["step", "p50", "p10", "p90"], rows, axes, width=60, height=12)
    assert 0 < canvas.tally.num_clipped < 12
    assert "▲" in canvas.text()
    whole = draw("band", ["step", "p50", "p10", "p90"], rows, {**axes, "clip": ""}, width=60, height=12)
    assert dots_in(canvas.text()) > dots_in(whole.text())

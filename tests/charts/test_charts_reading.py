"""What a chart says at a cursor, what smoothing does to a line, and where steps lie on another axis."""

import math

import pytest

from dflash_tui.charts import Options, Role, draw
from dflash_tui.charts.course import Course, Stretch
from dflash_tui.charts.reading import read_at
from dflash_tui.charts.smoothing import smooth

COLUMNS = ["step", "p10", "p50", "p90", "n"]
BAND = {"x": "step", "y": "p50", "low": "p10", "high": "p90"}
ROWS = [[100 * i, 1.0, 2.0 + i, 3.5, 40] for i in range(5)]
# Ten steps a minute; an hour of nothing between step 50 and step 51.
PAUSED = Course("time", "duration", [Stretch([1, 50], [0, 294]), Stretch([51, 100], [3900, 4194])])


def test_the_values_at_a_place_are_those_of_the_row_that_reaches_over_it() -> None:
    reading = read_at(COLUMNS, ROWS, BAND, 255.0)
    assert reading == (200, ["p50 4", "p10-p90 1-3.500", "n 40"])
    assert read_at(COLUMNS, ROWS, BAND, 1e9) == (400, ["p50 6", "p10-p90 1-3.500", "n 40"])
    assert read_at(COLUMNS, ROWS, BAND, -1) is None
    assert read_at(COLUMNS, [], BAND, 5) is None


def test_what_is_missing_there_is_said() -> None:
    rows = [[0, None, "NaN", None, 0], [None, 1.0, 1.0, 1.0, 1]]
    assert read_at(COLUMNS, rows, BAND, 10) == (0, ["p50 NaN", "n 0"])
    assert read_at(["step", "tau", "lookup"], [[0, 1.5, None]], {"y": "tau", "y2": "lookup"}, 0) == (
        0,
        ["tau 1.500"],
    )


def test_a_mean_has_no_bias_towards_its_first_value_and_no_gap_is_filled() -> None:
    assert smooth([3.0, 1.0, 4.0], 0.5) == pytest.approx([3.0, 5 / 3, 3.0])
    assert smooth([None, 7.0, None, 7.0], 0.98) == [None, 7.0, None, 7.0]
    assert smooth([1.7e308, -1.7e308], 0.6)[1] is not None
    assert all(math.isfinite(v) for v in smooth([1.7e308, -1.7e308] * 9, 0.6) if v is not None)


def test_a_click_finds_the_x_that_is_drawn_there() -> None:
    canvas = draw("band", COLUMNS, ROWS, BAND, width=60, height=12, options=Options(cursor=300))
    column = canvas.text().split("\n")[10].index("┸")
    assert canvas.x_of(column) == pytest.approx(300, abs=400 / 55)
    assert canvas.x_of(0) is None and canvas.x_of(60) is None
    assert draw("table", COLUMNS, ROWS, {}, width=60, height=12).x_of(5) is None


def test_the_cursor_is_told_from_marks_without_colour() -> None:
    canvas = draw("band", COLUMNS, ROWS, BAND, width=60, height=12, options=Options(cursor=300))
    assert {span.text for row in canvas.rows() for span in row if span.role is Role.FOCUS} == {"┃", "┸"}
    outside = draw("band", COLUMNS, ROWS, BAND, width=60, height=12, options=Options(cursor=-5))
    assert "┃" not in outside.text()


def test_steps_lie_in_time_and_a_pause_between_two_attempts_is_a_gap() -> None:
    assert [PAUSED.place(step) for step in (1, 25.5, 50, 51, 100)] == [0, 147, 294, 3900, 4194]
    assert [PAUSED.place(step) for step in (-7, 50.5, 1000)] == [0, 294, 4194]
    assert [PAUSED.step(place) for place in (-1, 147, 2000, 3900, 9999)] == [1, 25.5, 50, 51, 100]
    columns, rows, axes = PAUSED.along(["step", "loss"], [[1, 3.0], [50, 2.0], [51, 1.9]], {"y": "loss"})
    assert (columns, axes) == (["time", "loss"], {"y": "loss", "x": "time", "x_scale": "duration"})
    assert rows == [[0, 3.0], [294, 2.0], [3900, None], [3900, 1.9]]
    text = draw("line", columns, rows, axes, width=60, height=12).text()
    assert "1h" in text or "60m" in text


def test_one_known_step_is_enough() -> None:
    course = Course("tokens", "linear", [Stretch([7], [1000])])
    assert course.place(3) == course.place(9) == 1000 and course.step(5) == 7

"""Braille: which dots a line touches, and how layers meet on a canvas."""

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.dots import DOTTED, Dots

# The dots of a braille cell in the order of its bits, as (x, y): Unicode numbers them 1-8.
ORDER = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))


def dots_of(canvas: Canvas) -> set[tuple[int, int]]:
    found = set()
    for y, line in enumerate(canvas.text().split("\n")):
        for x, char in enumerate(line):
            mask = ord(char) - 0x2800 if 0x2800 <= ord(char) < 0x2900 else 0
            found |= {(2 * x + dx, 4 * y + dy) for bit, (dx, dy) in enumerate(ORDER) if mask >> bit & 1}
    return found


def drawn(dots: Dots, width: int, height: int) -> set[tuple[int, int]]:
    canvas = Canvas(width, height)
    dots.stamp(canvas, 0, 0, Role.DATA)
    return dots_of(canvas)


point = st.tuples(st.integers(0, 39), st.integers(0, 39))


@given(start=point, end=point)
def test_a_segment_joins_its_ends_without_a_hole_and_one_dot_thick(
    start: tuple[int, int], end: tuple[int, int]
) -> None:
    layer = Dots(20, 10)
    layer.segment(*start, *end)
    found = drawn(layer, 20, 10)
    assert {start, end} <= found
    assert len(found) == max(abs(start[0] - end[0]), abs(start[1] - end[1])) + 1
    # Every dot lies within half a dot of the line, measured along the shorter axis.
    dx, dy = end[0] - start[0], end[1] - start[1]
    for x, y in found:
        assert abs((x - start[0]) * dy - (y - start[1]) * dx) <= max(abs(dx), abs(dy)) * 0.5 + 1e-9


@given(x=st.integers(0, 9), ends=st.tuples(st.integers(0, 39), st.integers(0, 39)))
def test_a_column_is_every_dot_between_its_ends(x: int, ends: tuple[int, int]) -> None:
    layer = Dots(5, 10)
    layer.column(x, *ends)
    assert drawn(layer, 5, 10) == {(x, y) for y in range(min(ends), max(ends) + 1)}


def test_layers_join_and_keep_what_lies_below_a_band() -> None:
    canvas = Canvas(2, 1)
    canvas.shade(0, 0, 0)
    first, second = Dots(2, 1), Dots(2, 1)
    first.point(0, 0)
    second.point(1, 3)
    first.stamp(canvas, 0, 0, Role.DATA)
    second.stamp(canvas, 0, 0, Role.SECOND)
    assert dots_of(canvas) == {(0, 0), (1, 3)}
    (band, rest), *_ = canvas.rows()
    assert (band.role, band.ground) == (Role.SECOND, Role.BAND)
    assert (rest.role, rest.ground) == (Role.TEXT, None)


def test_a_dotted_layer_loses_no_dot_that_stands_alone() -> None:
    layer = Dots(2, 1)
    layer.point(1, 2)  # the right dot column of its cell
    layer.segment(2, 0, 3, 0)
    canvas = Canvas(2, 1)
    layer.stamp(canvas, 0, 0, Role.SECOND, DOTTED)
    assert dots_of(canvas) == {(1, 2), (2, 0)}

"""The grid: exact widths whatever is written, and nothing that could move a cursor."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import REPLACEMENT, cells, fit, fit_middle, text_width


def line_of(canvas: Canvas, y: int = 0) -> str:
    return "".join(span.text for span in canvas.rows()[y])


CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1)]
NEVER = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_widths_agree_with_what_the_screen_assumes() -> None:
    assigned = [c for c in CHARACTERS if unicodedata.category(c) not in NEVER]
    assert len(assigned) > 140_000
    drawn = {c: text for c in assigned if (text := "".join(cells(c))) != REPLACEMENT}
    assert [hex(ord(c)) for c, text in drawn.items() if cell_len(text) != text_width(c)] == []
    assert len(drawn) > 0.98 * len(assigned)


def test_control_characters_never_pass() -> None:
    bad = [c for c in CHARACTERS if unicodedata.category(c) in NEVER - {"Cn", "Co"}]
    assert {cell for c in bad for cell in cells(c)} == {REPLACEMENT}


def test_combining_marks_stay_with_their_letter() -> None:
    assert cells("e\u0301x") == ["é", "x"]
    assert cells("q\u0323w") == ["q\u0323", "w"]
    assert cells("数\u0301") == ["数\u0301", ""]
    assert cells("\u0301") == [REPLACEMENT]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "abc…"),
        ("数据集", 4, "数 …"),
        ("数据集", 5, "数据…"),
        ("a", 0, ""),
        ("ab", 1, "…"),
    ],
)
def test_fit(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown
    assert text_width(fit(text, width)) <= width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("position_acc 15", 15, "position_acc 15"),
        ("position_acc 15", 10, "posit…c 15"),
        ("position_acc 15", 9, "posi…c 15"),
        ("数据数据数据", 5, "数…据"),
        ("数据数据数据", 6, "数 …据"),
        ("position_acc 15", 2, "p…"),
        ("position_acc 15", 0, ""),
    ],
)
def test_a_cut_in_the_middle_keeps_both_ends(text: str, width: int, shown: str) -> None:
    assert fit_middle(text, width) == shown


@given(st.text(), st.integers(0, 30))
def test_what_is_cut_in_the_middle_fits(text: str, width: int) -> None:
    assert text_width(fit_middle(text, width)) <= width


writes = st.tuples(st.integers(-4, 14), st.integers(-1, 3), st.text(st.sampled_from("ab数据é\u0301\x1b"), max_size=6))


@given(st.lists(writes, max_size=8))
def test_writing_over_and_over_keeps_every_row_exact(pieces: list[tuple[int, int, str]]) -> None:
    canvas = Canvas(10, 2)
    for x, y, text in pieces:
        canvas.write(x, y, text, Role.TEXT)
    for y in range(2):
        assert cell_len(line_of(canvas, y)) == 10


def test_half_a_wide_character_is_a_blank() -> None:
    canvas = Canvas(4, 1)
    canvas.write(0, 0, "数据", Role.TEXT)
    canvas.put(1, 0, "x", Role.DATA)
    assert line_of(canvas) == " x据"
    canvas.write(3, 0, "集", Role.TEXT)
    assert line_of(canvas) == " x  "


def test_rows_are_runs_of_one_role() -> None:
    canvas = Canvas(8, 1)
    canvas.write(0, 0, "ab", Role.LABEL)
    canvas.write_right(8, 0, "cd", Role.DATA)
    assert [(span.text, span.role) for span in canvas.rows()[0]] == [
        ("ab", Role.LABEL), ("    ", Role.TEXT), ("cd", Role.DATA),
    ]  # fmt: skip
    assert canvas.text() == "ab    cd"


def test_blank_width_costs_nothing_and_is_still_there() -> None:
    canvas = Canvas(100_000, 1000, inked=3)
    canvas.write(0, 0, "abcdef", Role.TEXT)
    assert canvas.text().split("\n")[0] == "abc"
    assert len(line_of(canvas)) == 100_000


def test_a_size_of_nothing_is_one_cell() -> None:
    canvas = Canvas(0, -3)
    assert (canvas.width, canvas.height, canvas.text()) == (1, 1, "")


def test_a_note_is_wrapped_and_cut_with_a_sign() -> None:
    assert (
        Canvas(14, 3).note("no column 'p50'; the query gives step").text()
        == "  no column\n  'p50'; the\nquery gives s…"
    )
    assert Canvas(3, 1).note("no rows").text() == "no…"

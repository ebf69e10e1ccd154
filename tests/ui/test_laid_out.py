"""What fits where: columns, the status line, single lines. Widths are counted by the terminal library's own measure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from dflash_tui.errors import UsageError
from dflash_tui.runs import Run, Window
from dflash_tui.text import visible
from dflash_tui.ui.cells import laid, line
from dflash_tui.ui.columns import GAP, fitted
from dflash_tui.ui.run_columns import COLUMNS
from dflash_tui.ui.states import silence_s, state_words
from dflash_tui.ui.status import fitted as fitted_parts
from dflash_tui.ui.status import status_parts
from dflash_tui.ui.window_screen import parse_window

from .scripted_seat import make_run


def status_words(run: Run, eta_s: float | None, width: int) -> str:
    parts = fitted_parts(status_parts(run, eta_s, (), 0.0), width)
    return "".join(part.text + ("" if part.is_joined else "  ") for part in parts).rstrip()


TEXTS = st.text(max_size=40).map(visible)


@given(TEXTS, st.integers(0, 30), st.sampled_from(["left", "right"]))
def test_a_text_is_laid_into_exactly_its_cells(text: str, width: int, align: str) -> None:
    assert cell_len(laid(text, width, align)) == width


@given(st.lists(TEXTS, max_size=5), st.integers(0, 60))
def test_a_line_is_exactly_as_wide_as_asked(texts: list[str], width: int) -> None:
    strip = line([(text, Style()) for text in texts], width, Style())
    assert cell_len(strip.text) == width


NEEDS = st.tuples(*[st.integers(0, 60)] * len(COLUMNS))


@given(st.integers(-3, 400), NEEDS)
def test_columns_fit_and_the_name_takes_what_is_left(width: int, needs: tuple[int, ...]) -> None:
    columns = fitted(COLUMNS, width, needs)
    taken = sum(cells for _, cells in columns) + GAP * (len(columns) - 1)
    needed = sum(column.width for column in COLUMNS if column.rank == 0) + GAP
    assert taken == max(width, needed)
    assert {"STATE", "RUN"} <= {column.title for column, _ in columns}


def test_less_important_columns_give_way_first() -> None:
    needs = (60,) * len(COLUMNS)
    titles = [{column.title for column, _ in fitted(COLUMNS, width, needs)} for width in (150, 77, 60, 40)]
    assert "HOST" in titles[0] and "LOSS" in titles[0]
    assert "HOST" not in titles[1] and "LOSS p50" in titles[1]
    assert titles[2] == {"STATE", "RUN", "STEP"}
    assert titles[3] == {"STATE", "RUN"}


@pytest.mark.parametrize(
    ("width", "there", "gone"),
    [
        (150, ["v5-hardCE-g7-splitfc", "━", "33%", "ETA 15h 12m", "gpu2", "attempt 3", "age 2h 11m"], []),
        (80, ["v5-hardCE-g7-splitfc", "step 22,698/69,000", "33%"], ["gpu2", "attempt"]),
        (44, ["● running", "v5-hardCE"], ["ETA", "seen"]),
    ],
)
def test_the_status_line_keeps_what_matters(width: int, there: list[str], gone: list[str]) -> None:
    text = status_words(make_run("v5-hardCE-g7-splitfc", attempt=3), 54_720.0, width)
    assert cell_len(text) <= width
    assert [word for word in there if word not in text] == []
    assert [word for word in gone if word in text] == []


def test_losing_contact_is_never_dropped_from_the_status_line() -> None:
    text = status_words(make_run("v5", no_contact_s=41.0), None, 60)
    assert "● running" in text
    assert "no contact for 41 s" in text


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("run", Window()),
        (" ", Window()),
        ("last 2,000", Window.last_rows(2000)),
        ("500", Window.last_rows(500)),
        ("3000..5000", Window.between(3000, 5000)),
        ("3_000 to 5_000", Window.between(3000, 5000)),
    ],
)
def test_a_window_as_people_write_it(words: str, window: Window) -> None:
    assert parse_window(words) == window


@given(st.text(max_size=20))
def test_any_words_are_a_window_or_a_sentence(words: str) -> None:
    try:
        assert isinstance(parse_window(words), Window)
    except UsageError as e:
        assert "window" in str(e)


def test_a_reason_that_repeats_the_state_is_not_said_twice() -> None:
    assert state_words(make_run("a", state="finished", reason="completed")) == "finished"
    assert state_words(make_run("a", state="lost", reason="host-rebooted")) == "lost: host-rebooted"


def test_silence_begins_after_a_poll_or_two_was_missed() -> None:
    assert silence_s(make_run("a", no_contact_s=9.0)) is None
    assert silence_s(make_run("a", no_contact_s=41.0), since_s=5.0) == 46.0
    assert silence_s(make_run("a", no_contact_s=9.0), since_s=32.0) is None, "it was we who did not look"
    assert silence_s(make_run("a", no_contact_s=None), since_s=999.0) is None

"""How values read."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui import text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (8e-06, "8e-06"),
        (1.16e-09, "1.16e-09"),
        (3e-10, "3e-10"),
        (0.0668, "0.06680"),
        (0.1623, "0.1623"),
        (2.731, "2.731"),
        (41.5, "41.50"),
        (26146.0, "26,146"),
        (26145.7, "26,146"),
        (22698, "22,698"),
        (0.0, "0"),
        (None, "-"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (7.5e299, "7.5e+299"),
        (-9.8991234e15, "-9.899e+15"),
        (10**400, "1e+400"),
    ],
)
def test_numbers_keep_their_significant_digits(value: float | None, words: str) -> None:
    assert text.number(value) == words


@given(st.floats(-1.7e308, 1.7e308))
def test_a_number_that_is_not_zero_never_reads_as_zero(value: float) -> None:
    read = float(text.number(value).replace(",", ""))
    assert (read == 0) == (value == 0)
    assert math.isclose(read, value, rel_tol=6e-4)


@pytest.mark.parametrize(
    ("value", "width", "words"),
    [
        (750_000_000.0, 11, "750,000,000"),
        (750_000_000, 8, "750M"),
        (12_345_678, 8, "12.35M"),
        (-9_899_123.0, 8, "-9.9M"),
        (-9.8991234e15, 8, "-9.9e+15"),
        (26_146.4, 5, "26.1k"),
        (1234.56, 6, "1,235"),
        (0.00123456, 7, "0.00123"),
        (10**30, 8, "1e+30"),
        (-math.inf, 8, "-Inf"),
        (None, 3, "-"),
        (8e-06, 4, "…"),
    ],
)
def test_a_number_has_fewer_digits_where_it_does_not_fit(value: float | None, width: int, words: str) -> None:
    assert text.number_within(value, width) == words


@given(st.floats(allow_nan=False) | st.integers(), st.integers(8, 30))
def test_a_number_is_never_cut(value: float, width: int) -> None:
    words = text.number_within(value, width)
    assert len(words) <= width and words != "…"


@given(st.text())
def test_visible_text_moves_no_cursor(value: str) -> None:
    assert all(unicodedata.category(c)[0] != "C" for c in text.visible(value))


def test_visible_keeps_what_people_write() -> None:
    assert text.visible("café 学習 ✅") == "café 学習 ✅"
    assert text.visible("a\x1b[31mb\nc\u202e") == "a\\x1b[31mb\\nc\\u202e"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.6, "1m 00s"), (41, "41 s"), (245, "4m 05s"), (7860, "2h 11m"), (273600, "3d 04h"), (None, "-")],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert text.duration(seconds) == words


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (1_234_567_890, "1,234.6 MB"),
        (14_000_000_000, "14 GB"),
    ],
)
def test_sizes(num_bytes: int, words: str) -> None:
    assert text.data_size(num_bytes) == words

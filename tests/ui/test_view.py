"""Zooming, panning and the cursor as arithmetic; where steps lie in time and tokens."""

from dataclasses import replace

import pytest

from dflash_tui.runs import Window
from dflash_tui.ui.course import Part, time_course, token_course
from dflash_tui.ui.view import OPEN_END, Extent, View

WHOLE = Extent(0, 1000)
VIEW = View(whole=WHOLE)
STEPS = [0.0, 250.0, 500.0, 750.0, 1000.0]


def zoomed_to(view: View) -> tuple[int | None, int | None]:
    assert view.zoom is not None
    return view.zoom.first, view.zoom.last


def test_zooming_in_keeps_the_newest_steps_and_goes_on_with_the_run() -> None:
    view = VIEW.zoomed(WHOLE, 0.5)
    assert zoomed_to(view) == (500, OPEN_END)
    assert view.asked == view.zoom and view.words == "zoom 500.."
    assert zoomed_to(view.zoomed(Extent(500, 1000), 0.5)) == (750, OPEN_END)


def test_zooming_stays_around_the_cursor_or_where_it_is_pointed_at() -> None:
    assert zoomed_to(replace(VIEW, cursor=400.0).zoomed(WHOLE, 0.5)) == (200, 700)
    assert zoomed_to(VIEW.zoomed(WHOLE, 0.5, around=100)) == (50, 550)
    assert replace(VIEW, cursor=400.0).zoomed(WHOLE, 0.5).words == "zoom 200..700"
    assert zoomed_to(replace(VIEW, cursor=9999.0).zoomed(WHOLE, 0.5)) == (500, OPEN_END), "a cursor out of sight"


def test_zooming_out_ends_at_the_window() -> None:
    view = VIEW.zoomed(WHOLE, 0.25, around=500)
    wider = view.zoomed(Extent(375, 625), 2.0, around=500)
    assert zoomed_to(wider) == (250, 750)
    assert wider.zoomed(Extent(250, 750), 2.0).zoom is None
    assert VIEW.zoomed(WHOLE, 2.0).zoom is None


def test_a_few_steps_are_the_closest_look() -> None:
    first, last = zoomed_to(VIEW.zoomed(Extent(500, 504), 0.5, around=500))
    assert (first, last) == (500, 508)


def test_panning_stops_at_both_ends() -> None:
    view = VIEW.zoomed(WHOLE, 0.2, around=500)
    assert zoomed_to(view) == (400, 600)
    assert zoomed_to(view.panned(Extent(400, 600), -0.5)) == (300, 500)
    assert zoomed_to(view.panned(Extent(100, 300), -5)) == (0, 200)
    assert zoomed_to(view.panned(Extent(700, 900), 0.5)) == (800, OPEN_END)
    assert VIEW.panned(WHOLE, 0.5) == VIEW, "nothing is zoomed"


def test_a_run_that_goes_on_can_be_panned_to_its_end() -> None:
    view = VIEW.zoomed(WHOLE, 0.5)
    grown = view.seen(Extent(500, 3000))
    assert grown.whole == Extent(0, 3000)
    assert zoomed_to(grown.panned(Extent(500, 3000), 0.5)) == (500, OPEN_END)
    assert zoomed_to(grown.panned(Extent(500, 3000), -0.5)) == (0, 2500)
    assert zoomed_to(view.panned(Extent(500, 3000), 0.5)) == (0, OPEN_END), "wider than what is known"


def test_what_panels_out_of_sight_have_of_a_whole_run_stays_known() -> None:
    assert View().seen(Extent(0, 400)).seen(Extent(1, 500)).whole == Extent(0, 500)
    last = View(Window.last_rows(100))
    assert last.seen(Extent(0, 99)).seen(Extent(100, 199)).whole == Extent(100, 199)


def test_a_cursor_that_a_pan_leaves_behind_is_put_away() -> None:
    view = replace(VIEW, cursor=500.0).zoomed(WHOLE, 0.2)
    assert (zoomed_to(view), view.cursor) == ((400, 600), 500)
    assert view.panned(Extent(400, 600), 0.25).cursor == 500
    assert view.panned(Extent(400, 600), 0.75).cursor is None


def test_the_cursor_begins_at_the_newest_row_and_pans_at_the_end_of_a_zoom() -> None:
    view = VIEW.moved(STEPS, -1, WHOLE)
    assert view.cursor == 1000
    assert view.moved(STEPS, 1, WHOLE).cursor == 1000
    assert view.moved(STEPS, -1, WHOLE).cursor == 750
    assert replace(VIEW, cursor=600.0).moved(STEPS, -1, WHOLE).cursor == 500, "between two rows"
    assert replace(VIEW, cursor=600.0).moved(STEPS, 1, WHOLE).cursor == 750
    zoomed = replace(VIEW.zoomed(WHOLE, 0.2, around=500), cursor=400.0)
    on = zoomed.moved([400.0, 500.0, 600.0], -1, Extent(400, 600))
    assert on.cursor == 400 and zoomed_to(on) == (300, 500)


def test_a_window_of_ones_own_is_named_and_zoomed_within() -> None:
    view = View(Window.last_rows(2000)).seen(Extent(8000, 10_000))
    assert view.words == "last 2,000 rows"
    assert zoomed_to(view.zoomed(Extent(8000, 10_000), 0.5)) == (9000, OPEN_END)
    assert View().words == ""


# Two attempts, 1 s a step, an hour between; the first row of each is a stretch before the window.
PARTS = [
    Part(1, -1, 1, 100, 0.0, 99.0, 1000.0, None),
    Part(1, 0, 101, 200, 100.0, 199.0, 1000.0, None),
    Part(2, 1, 201, 300, 3800.0, 3899.0, 500.0, None),
]


def test_time_begins_with_the_run_and_has_a_gap_at_a_resume() -> None:
    course = time_course(PARTS)
    assert course is not None
    assert [course.place(step) for step in (101, 200, 201, 300)] == [100, 199, 3800, 3899]
    assert len(course.stretches) == 2
    assert replace(VIEW, axis="time", cursor=201).place_words(course) == "cursor 201, 1h 03m"
    assert replace(VIEW, axis="time").place_words(course) == "x time"
    assert VIEW.place_words(None) == ""


def test_tokens_count_from_the_start_of_the_run_and_go_on_through_a_resume() -> None:
    course = token_course(PARTS)
    assert course is not None
    assert [course.place(step) for step in (200, 300)] == [2000, 2500]
    assert course.place(150) == pytest.approx(1500)
    assert len(course.stretches) == 1
    assert replace(VIEW, axis="tokens", cursor=200).place_words(course) == "cursor 200, 2k tokens"
    by_length = token_course([part._replace(tokens=None, product=part.tokens) for part in PARTS])
    assert by_length == course


def test_what_is_not_logged_is_no_axis() -> None:
    bare = [part._replace(first_time=None, last_time=None, tokens=None) for part in PARTS]
    assert time_course(bare) is None and token_course(bare) is None

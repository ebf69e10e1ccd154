"""The pace of asking: who is on screen often, all of a host at one time, and a slow link seldom."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui import pace
from dflash_tui.pace import FOCUSED_S, HIDDEN_S, REST, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pace, "time", found)
    return found


def sweeps(one: Pace, clock: Clock, seconds: float) -> list[tuple[float, list[str]]]:
    """When somebody is asked for, and who, if each request takes `one.sweep_s`."""
    found, end = [], clock.now + seconds
    while clock.now < end:
        if due := one.due():
            found.append((clock.now, sorted(due)))
            one.begin(due)
            clock.now += one.sweep_s
        else:
            clock.now += one.wait_s()
    return found


def test_all_runs_of_a_host_are_asked_for_in_one_request(clock: Clock) -> None:
    one = Pace()
    for n in range(5):
        # They come one after the other, each at once.
        assert one.follow([f"r{k}" for k in range(n + 1)], None)
        assert f"r{n}" in one.due()
        sweeps(one, clock, 0.3)
    found = sweeps(one, clock, 20)
    assert all(len(due) == 5 for _, due in found[2:]) and 9 <= len(found) <= 11


def test_the_run_on_screen_is_asked_for_often_and_the_others_less(clock: Clock) -> None:
    one = Pace()
    one.follow(["a", "b"], "a")
    found = sweeps(one, clock, 40)
    times = {run: [at for at, due in found if run in due] for run in "ab"}
    assert 40 / FOCUSED_S * 0.9 < len(times["a"]) <= 40 / FOCUSED_S + 2
    assert 40 / HIDDEN_S - 1 <= len(times["b"]) <= 40 / HIDDEN_S + 2
    # Nobody on screen is no reason to ask as rarely.
    one.follow(["a", "b"], None)
    assert 19 <= len(sweeps(one, clock, 40)) <= 22


def test_who_is_asked_about_comes_at_once(clock: Clock) -> None:
    one = Pace()
    one.follow(["a", "b"], None)
    sweeps(one, clock, 10.1)
    one.begin(one.due())
    assert one.due() == []
    one.hurry(["b", "unknown"])
    assert one.due() == ["b"]
    one.begin(["b"])
    one.hurry()
    assert sorted(one.due()) == ["a", "b"]
    assert not one.follow(["a", "b"], None) and one.follow(["a", "c"], None) and one.follow(["a", "c"], "a")
    assert bool(one) and not one.follow([], "a") and not one


@given(st.floats(0.0, 30.0), st.floats(0.001, 5.0))
def test_a_slow_link_has_a_pause_that_is_longer_than_it_takes(start: float, sweep_s: float) -> None:
    one = Pace()
    clock = Clock()
    clock.now += start
    saved, pace.time = pace.time, clock  # type: ignore[assignment]
    try:
        one.follow(["a"], "a")
        one.sweep_s = sweep_s
        found = [at for at, _ in sweeps(one, clock, 100)]
        gaps = [later - at for at, later in pairwise(found[1:])]
        interval_s = max(FOCUSED_S, REST * sweep_s)
        assert all(interval_s / 2 - 1e-6 <= gap <= interval_s * 1.5 + 1e-6 for gap in gaps), gaps
        assert all(gap >= 1.5 * sweep_s - 1e-6 for gap in gaps), "half as long as it takes, at least"
    finally:
        pace.time = saved

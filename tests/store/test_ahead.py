"""Results come in order, whatever the threads do, and no more is held than was allowed."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.store.ahead import work_ahead


@settings(deadline=None, max_examples=40)
@given(
    naps=st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.003]), max_size=30),
    num_threads=st.integers(1, 4),
    num_ahead=st.integers(1, 6),
)
def test_results_come_in_order_and_no_more_is_held_than_was_allowed(
    naps: list[float], num_threads: int, num_ahead: int
) -> None:
    held, most, guard = 0, 0, threading.Lock()

    def items() -> Iterator[tuple[int, float]]:
        nonlocal held, most
        for number, nap in enumerate(naps):
            with guard:
                held += 1
                most = max(most, held)
            yield number, nap

    def work(item: tuple[int, float]) -> int:
        nonlocal held
        time.sleep(item[1])
        with guard:
            held -= 1
        return item[0]

    assert list(work_ahead(items(), work, num_threads=num_threads, num_ahead=num_ahead)) == list(range(len(naps)))
    assert most <= min(num_threads, num_ahead)


@pytest.mark.parametrize("place", ["items", "work"])
def test_what_fails_is_raised_in_its_place(place: str) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        if place == "items":
            raise ValueError("no more")
        yield 3
        yield 4

    def work(item: int) -> int:
        if item == 3:
            raise ValueError("no more")
        return item

    found: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        for result in work_ahead(items(), work, num_threads=2, num_ahead=2):
            found.append(result)
    assert found == [0, 1, 2]
    alive = [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead-")]
    assert alive == []


def test_closed_early_it_leaves_no_thread_behind() -> None:
    with closing(work_ahead(iter(range(1000)), str, num_threads=2, num_ahead=3)) as ahead:
        assert next(ahead) == "0"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead-")]


def test_a_thread_that_cannot_be_started_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, []

    def limited(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start"):
        list(work_ahead(iter(range(1000)), str, num_threads=2, num_ahead=2))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead-")]

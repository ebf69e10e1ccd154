"""Work on items by some threads, ahead of whoever takes the results, in order. Knows nothing of what the work is."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from dflash_tui.store.interrupts import start

T = TypeVar("T")
R = TypeVar("R")


def work_ahead(items: Iterator[T], work: Callable[[T], R], *, num_threads: int, num_ahead: int) -> Generator[R]:
    """What `work` makes of each item, in order. An item is fetched when a thread is free for it: no more than
    `num_threads` of them are held at a time, and no more than `num_ahead` results wait to be taken.

    What `items` or `work` raises is raised in its place. Closed early, it ends when the work that was begun has."""
    line: _Line[T, R] = _Line(items, num_ahead)

    def run() -> None:
        while found := line.fetch():
            future, item = found
            try:
                future.set_result(work(item))
            except BaseException as e:  # noqa: BLE001 - raised by who takes the results
                future.set_exception(e)
            del found, item  # Not to be held beside the next one.

    threads = [threading.Thread(target=run, name=f"ahead-{n}") for n in range(num_threads)]
    try:
        for thread in threads:
            start(thread)
        while future := line.first():
            result = future.result()
            line.pop()
            yield result
    finally:
        line.close()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


class _Line(Generic[T, R]):
    """The items to come, and the places of their results in order."""

    def __init__(self, items: Iterator[T], num_ahead: int) -> None:
        self._items = items
        self._num_ahead = num_ahead
        self._changed = threading.Condition()
        self._ahead: deque[Future[R]] = deque()
        self._is_over = False

    def fetch(self) -> tuple[Future[R], T] | None:
        """The next item, and where its result goes, when there is room for one; None: there are no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(self._ahead) < self._num_ahead)
            if self._is_over:
                return None
            future: Future[R] = Future()
            found = None
            try:
                found = future, next(self._items)
                self._ahead.append(future)
            except StopIteration:
                self._is_over = True
            except BaseException as e:  # noqa: BLE001 - raised by who takes the results
                self._is_over = True
                future.set_exception(e)
                self._ahead.append(future)
            self._changed.notify_all()
            return found

    def first(self) -> Future[R] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._ahead)
            return self._ahead[0] if self._ahead else None

    def pop(self) -> None:
        with self._changed:
            self._ahead.popleft()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

"""Work on items by some threads, ahead of whoever takes the results, in order. Knows nothing of what the work is."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def work_ahead(items: Iterator[T], work: Callable[[T], R], *, num_threads: int, num_ahead: int) -> Generator[R]:
    """What `work` makes of each item, in order. An item is fetched when a thread is free for it: no more than
    `num_threads` of them are held at a time, and no more than `num_ahead` results wait to be taken.

    What `items` or `work` raises is raised in its place. Closed early, it ends when the work that was begun has."""
    changed = threading.Condition()
    ahead: deque[Future[R]] = deque()
    is_over = False

    def fetch() -> tuple[Future[R], T] | None:
        """The next item, and where its result goes; waits until there is room for one."""
        nonlocal is_over
        with changed:
            changed.wait_for(lambda: is_over or len(ahead) < num_ahead)
            if is_over:
                return None
            future: Future[R] = Future()
            found = None
            try:
                found = future, next(items)
                ahead.append(future)
            except StopIteration:
                is_over = True
            except BaseException as e:  # noqa: BLE001 - raised by who takes the results
                is_over = True
                future.set_exception(e)
                ahead.append(future)
            changed.notify_all()
            return found

    def run() -> None:
        while found := fetch():
            future, item = found
            try:
                future.set_result(work(item))
            except BaseException as e:  # noqa: BLE001 - as above
                future.set_exception(e)
            del found, item  # Not to be held beside the next one.

    threads = [threading.Thread(target=run, name=f"ahead-{n}") for n in range(num_threads)]
    for thread in threads:
        thread.start()
    try:
        while True:
            with changed:
                changed.wait_for(lambda: is_over or ahead)
                if not ahead:
                    return
                future = ahead[0]
            result = future.result()
            with changed:
                ahead.popleft()
                changed.notify_all()
            yield result
    finally:
        with changed:
            is_over = True
            changed.notify_all()
        for thread in threads:
            thread.join()

"""Ctrl-C while DuckDB works in the main thread, where Python hears of it only when DuckDB returns, minutes later."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AGAIN_S = 0.1


@contextmanager
def ctrl_c_cancels(cancel: Callable[[], None]) -> Iterator[None]:
    """While the `with` lasts, Ctrl-C calls `cancel` in a thread of its own, and the `with` ends in a KeyboardInterrupt.

    The signal's number comes through a pipe, which needs no Python in the main thread. In other threads: nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed, done = threading.Event(), threading.Event()

    def watch() -> None:
        while number := os.read(out, 1):
            if number[0] == signal.SIGINT:
                pressed.set()
                # One that comes between two steps of the engine is lost.
                while not done.wait(_AGAIN_S):
                    cancel()

    out, into = os.pipe()
    os.set_blocking(into, False)
    before = signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="ctrl-c", daemon=True)
    watcher.start()
    try:
        yield
    except BaseException as e:
        if pressed.is_set() and not isinstance(e, KeyboardInterrupt):
            raise KeyboardInterrupt from e
        raise
    finally:
        done.set()
        signal.set_wakeup_fd(before)
        os.close(into)
        watcher.join()
        os.close(out)

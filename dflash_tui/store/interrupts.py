"""Ctrl-C while DuckDB works in the main thread, where Python hears of it only when DuckDB returns, minutes later; and
work that no Ctrl-C may hit in the middle."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

_AGAIN_S = 0.1
T = TypeVar("T")


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


def apart(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """What `work` gives. In the main thread it is done by another one: a Ctrl-C calls `stop`, which makes it end soon,
    and is raised when it has ended, however often it was pressed."""
    ignores = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if threading.current_thread() is not threading.main_thread() or ignores:
        return work()
    is_pressed = False

    # Not an exception, which could come between any two lines here, and leave the thread behind.
    def press(number: int, frame: FrameType | None) -> None:
        nonlocal is_pressed
        is_pressed = True

    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as e:  # noqa: BLE001 - raised below, by whoever waits for it
            future.set_exception(e)

    # No pool: the interpreter joins a pool's threads once more when it ends, where a Ctrl-C leaves a traceback.
    thread = threading.Thread(target=run, name="apart")
    before = signal.signal(signal.SIGINT, press)
    try:
        thread.start()
        while thread.is_alive():
            if is_pressed:
                # Again and again: one that comes between two steps of the engine is lost.
                stop()
            thread.join(_AGAIN_S)
    finally:
        signal.signal(signal.SIGINT, before)
    if is_pressed:
        raise KeyboardInterrupt
    return future.result()


@contextmanager
def interruptible() -> Iterator[None]:
    """DuckDB swallows a Ctrl-C in its main thread and raises a RuntimeError of its own: make it one again."""
    try:
        yield
    except RuntimeError as e:
        if str(e) == "Query interrupted":
            raise KeyboardInterrupt from e
        raise


@contextmanager
def held() -> Iterator[None]:
    """A Ctrl-C comes before the `with` or behind it. In threads that never get one: nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal is_pressed
        is_pressed = True

    before = signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if is_pressed:
        signal.raise_signal(signal.SIGINT)


def start(thread: threading.Thread) -> None:
    """Start it so that a Ctrl-C comes before or after: `thread.ident` tells. None is ever delivered to the thread."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

"""A lock for those who write: in the order of asking, and one who works for long lets the others pass in between."""

import threading
from types import TracebackType
from typing import Self


class Turns:
    """`with turns:` waits for one's turn. Whoever is interrupted while it waits is passed over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._now = self._next = 0
        self._given_up: set[int] = set()

    def __enter__(self) -> Self:
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def let_pass(self) -> None:
        """Inside the `with`: all who wait now have their turn before this returns."""
        self._leave()
        try:
            self._wait()
        except BaseException:
            # The `with` that we are in will give it back.
            self._wait()
            raise

    def _wait(self) -> None:
        with self._changed:
            mine, self._next = self._next, self._next + 1
            try:
                self._changed.wait_for(lambda: self._now == mine)
            except BaseException:
                if self._now == mine:
                    self._advance()
                else:
                    self._given_up.add(mine)
                raise

    def _leave(self) -> None:
        with self._changed:
            self._advance()

    def _advance(self) -> None:
        self._now += 1
        while self._now in self._given_up:
            self._given_up.remove(self._now)
            self._now += 1
        self._changed.notify_all()

"""When each run of a host is asked for next: the one on screen often, one that was asked about at once.

All runs of a host share the beats of one clock, so that they are asked for in one request; each host has its own.
"""

import math
import random
import time
from collections.abc import Iterable

FOCUSED_S = 0.25
VISIBLE_S = 2.0
HIDDEN_S = 10.0
# No interval is shorter than so many times what a sweep takes: a slow link is not kept busy.
REST = 3.0


class Pace:
    """`sweep_s` is what the last sweep took, `focus` the run on screen."""

    def __init__(self) -> None:
        self.sweep_s = 0.0
        self._due: dict[str, float] = {}
        self.focus: str | None = None
        self._phase = random.random()

    def __bool__(self) -> bool:
        """Whether there is a run at all."""
        return bool(self._due)

    def follow(self, run_ids: Iterable[str], focus: str | None) -> bool:
        """These are the runs now; new ones, and the one on screen, are due at once. Whether that is news."""
        runs = list(run_ids)
        is_news = not set(runs) <= self._due.keys() or focus != self.focus
        self.focus = focus
        self._due = {run_id: self._due.get(run_id, 0.0) for run_id in runs}
        self.hurry([focus] if focus else [])
        return is_news

    def hurry(self, run_ids: Iterable[str] | None = None) -> None:
        """These are due now, if they are followed; None: all of them."""
        wanted = self._due.keys() if run_ids is None else self._due.keys() & set(run_ids)
        self._due |= dict.fromkeys(wanted, 0.0)

    def due(self) -> list[str]:
        now = time.monotonic()
        return [run_id for run_id, at in self._due.items() if at <= now]

    def wait_s(self) -> float:
        """Until the next one is due."""
        return max(0.0, min(self._due.values()) - time.monotonic())

    def begin(self, run_ids: Iterable[str]) -> None:
        """They are asked for now; whoever hurries them from here on is not forgotten."""
        now = time.monotonic()
        self._due |= {run_id: self._next_beat(now, self._interval_s(run_id)) for run_id in run_ids}

    def _interval_s(self, run_id: str) -> float:
        wanted_s = VISIBLE_S if self.focus is None else FOCUSED_S if run_id == self.focus else HIDDEN_S
        return max(wanted_s, REST * self.sweep_s)

    def _next_beat(self, now: float, interval_s: float) -> float:
        """The first one that is at least half an interval away."""
        return self._phase + math.ceil((now - self._phase) / interval_s + 0.5) * interval_s

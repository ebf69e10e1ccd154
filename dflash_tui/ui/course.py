"""Where a run's steps lie in time and in tokens, asked of the store. Blocking; raises DflashError."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from dflash_tui.charts.course import Course, Stretch
from dflash_tui.runs import Window
from dflash_tui.store.base import Store
from dflash_tui.store.screens import ask_screen

MISSING = {
    "time": "this log has no `time`: the x axis stays the step",
    "tokens": "this log has neither `tokens` nor `avg_batch_size` and `avg_seq_len`: the x axis stays the step",
}


class Part(NamedTuple):
    """A row of course.sql."""

    attempt: int
    bucket: int
    first_step: int
    last_step: int
    first_time: float | None
    last_time: float | None
    tokens: float | None
    product: float | None


def ask_course(store: Store, run_id: str, window: Window, axis: str, buckets: int) -> Course | None:
    """The course over the steps of `window`; None when the run logs nothing that tells."""
    rows = store.window(run_id, window)
    if rows.first is None or rows.last is None:
        return None
    params = {"run": run_id, "first": rows.first, "last": rows.last, "buckets": buckets}
    parts = [Part(*row) for row in ask_screen(store, "course", params)]
    return time_course(parts) if axis == "time" else token_course(parts)


def time_course(parts: list[Part]) -> Course | None:
    """Seconds since the run's first row, pauses included; each attempt is a stretch of its own."""
    timed = [part for part in parts if part.first_time is not None]
    start = min((part.first_time or 0.0 for part in timed), default=0.0)
    stretches = []
    for _, group in groupby((part for part in timed if part.bucket >= 0), key=lambda part: part.attempt):
        ends = [
            (step, time - start)
            for part in group
            for step, time in ((part.first_step, part.first_time), (part.last_step, part.last_time))
            if time is not None
        ]
        stretches.append(_stretch(ends))
    return Course("time", "duration", stretches) if stretches else None


def token_course(parts: list[Part]) -> Course | None:
    """Tokens up to a step, that step's own included; they go on through a resume."""
    has_tokens = any(part.tokens is not None for part in parts)
    total, ends = 0.0, list[tuple[float, float]]()
    for part in parts:
        tokens = (part.tokens if has_tokens else part.product) or 0.0
        num_steps = part.last_step - part.first_step + 1
        if part.bucket >= 0:
            ends += [(part.first_step, total + tokens / num_steps), (part.last_step, total + tokens)]
        total += tokens
    return Course("tokens", "linear", [_stretch(ends)]) if ends and total else None


def _stretch(ends: Iterable[tuple[float, float]]) -> Stretch:
    """Of these places those at a higher step than any before."""
    steps, places = list[float](), list[float]()
    for step, place in ends:
        if not steps or step > steps[-1]:
            steps.append(step)
            places.append(place)
    return Stretch(steps, places)

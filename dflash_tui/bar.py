"""How a long ingest goes, on stderr: a bar on a terminal, elsewhere a line now and then; nothing for a quick one.

Owns what is shown and how often. Knows neither the store nor the command; rich is imported only once a bar is drawn.
"""

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dflash_tui.text import duration, number, numbered, visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from dflash_tui.store.base import IngestProgress

BAR_AFTER_S = 0.5
LINE_EVERY_S = 10.0


class IngestBar:
    """`with IngestBar("log.jsonl") as bar:` an ingest may call `bar.show`; afterwards nothing of it stays on screen."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = visible(what)
        self._clock = clock
        self._begun = self._told = clock()
        self._reading_since: float | None = None
        self._bar: Progress | None = None
        self._on_terminal = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")

    def show(self, progress: "IngestProgress") -> None:
        """The newest figures; they are shown when it is time to."""
        now = self._clock()
        if progress.bytes_total and self._reading_since is None:
            self._reading_since = now
        if progress.bytes_total and progress.bytes_done >= progress.bytes_total:
            return
        words = _words(progress, now - (self._reading_since or now))
        if self._on_terminal:
            if now - self._begun >= BAR_AFTER_S:
                self._draw(progress, words)
        elif now - self._told >= LINE_EVERY_S:
            self._told = now
            print(f"{self._what}: {words}", file=sys.stderr, flush=True)

    def _draw(self, progress: "IngestProgress", words: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn(escape(self._what)), BarColumn(), TextColumn("{task.description}"))
            # Neither stream is taken over: stdout is data, also while a bar is there.
            self._bar = Progress(
                *columns,
                console=Console(stderr=True),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.add_task("")
            self._bar.start()
        [task] = self._bar.task_ids
        total = progress.bytes_total or None
        self._bar.update(task, completed=progress.bytes_done, total=total, description=words, refresh=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


def _words(progress: "IngestProgress", elapsed_s: float) -> str:
    if not progress.bytes_done or not elapsed_s:
        return "reading"
    rate = progress.bytes_done / elapsed_s
    left_s = (progress.bytes_total - progress.bytes_done) / rate
    return (
        f"{numbered(progress.rows, 'row')} · {100 * progress.bytes_done // progress.bytes_total} %"
        f" · {number(rate / 1e6, 3)} MB/s · {duration(left_s)} left"
    )

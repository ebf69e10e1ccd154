"""What the hosts bring goes into the tables together: a transaction costs more than the lines of one host.

Owns when that is: for the run on screen at once, for others when the tables have rested longer than they worked.
"""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from dflash_tui.errors import DflashError
from dflash_tui.store.database import Database
from dflash_tui.threads import in_thread

# The tables rest so many times what a round took: fifty hosts make a few large rounds, and one host never waits.
REST = 25.0
MAX_REST_S = 1.0


class _Round:
    """Runs that are taken in together."""

    def __init__(self) -> None:
        self.run_ids: set[str] = set()
        self.heard: set[str] = set()
        self.is_urgent = asyncio.Event()
        self.work: asyncio.Task[dict[str, str]] | None = None


class Gathering:
    """One for all hosts of a session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = _Round()
        self._turn = asyncio.Lock()
        self._rested_at = 0.0
        self._working: set[asyncio.Task[dict[str, str]]] = set()

    async def take_in(self, run_ids: Iterable[str], heard: Iterable[str], *, is_urgent: bool) -> dict[str, str]:
        """Until what the mirrors of these runs hold is in the tables, and that the host of those that were `heard`
        has answered. By run, why one could not be taken in."""
        mine, asked = self._next, set(run_ids)
        mine.run_ids |= asked
        mine.heard.update(heard)
        if is_urgent:
            mine.is_urgent.set()
        if mine.work is None:
            mine.work = asyncio.create_task(self._work(mine))
            self._working.add(mine.work)
            mine.work.add_done_callback(self._working.discard)
        troubles = await asyncio.shield(mine.work)
        return {run_id: words for run_id, words in troubles.items() if run_id in asked}

    async def close(self) -> None:
        """Once all that lies in the mirrors is in the tables, and no thread works on it any more."""
        self._next.is_urgent.set()
        while self._working:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(set(self._working))

    async def _work(self, mine: _Round) -> dict[str, str]:
        async with self._turn:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._rested_at - time.monotonic())):
                    await mine.is_urgent.wait()
            # Who comes from here on is of the next one.
            self._next = _Round()
            begun = time.monotonic()
            troubles = await in_thread(partial(self._take_in, sorted(mine.run_ids), sorted(mine.heard)))
            ended = time.monotonic()
            self._rested_at = ended + min(MAX_REST_S, REST * (ended - begun))
            return troubles

    def _take_in(self, run_ids: list[str], heard: list[str]) -> dict[str, str]:
        troubles = self._take_in_each(run_ids) if run_ids else {}
        if heard:
            self._database.contact(heard, time.time())
        return troubles

    def _take_in_each(self, run_ids: list[str]) -> dict[str, str]:
        """All at once; only where that fails one by one, so that no run's trouble is another's."""
        try:
            self._database.take_in_all(run_ids)
        except DflashError:
            troubles = {}
            for run_id in run_ids:
                try:
                    self._database.take_in(run_id)
                except DflashError as e:
                    troubles[run_id] = str(e)
            return troubles
        return {}

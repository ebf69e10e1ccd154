"""Keeping a screen fresh: any number of "something changed" become few refreshes, one at a time.

Owns the pace. What a refresh asks and shows is its screen's business.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

# At most four redraws a second.
GAP_S = 0.25
# A slow store is asked less often: a refresh gets at most this share of the time.
BUSY_SHARE = 1 / 3


class Freshener:
    """Calls `refresh` at once, then whenever `mark` was called since; never twice at a time, and `gap_s` apart.

    A refresh under way is never cut off by news, or a slow store would never show anything.
    """

    def __init__(
        self, refresh: Callable[[], Awaitable[None]], gap_s: float = GAP_S, busy_share: float = BUSY_SHARE
    ) -> None:
        self._refresh = refresh
        self._gap_s = gap_s
        self._busy_share = busy_share
        self._changed = asyncio.Event()
        self._hurried = asyncio.Event()

    def mark(self) -> None:
        """Something changed."""
        self._changed.set()

    def hurry(self) -> None:
        """A person changed what is asked: no pause before the next refresh, however slow the store is."""
        self._changed.set()
        self._hurried.set()

    async def run(self) -> None:
        """Never returns; cancel it. Starting it anew refreshes at once, whatever the pace."""
        clock = asyncio.get_running_loop().time
        while True:
            self._changed.clear()
            self._hurried.clear()
            began = clock()
            await self._refresh()
            took_s = clock() - began
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._gap_s, took_s / self._busy_share) - took_s):
                    await self._hurried.wait()
            await self._changed.wait()

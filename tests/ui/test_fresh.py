"""The pace of refreshing: once at a time, none lost, none in vain."""

import asyncio
from contextlib import suppress
from itertools import pairwise

from dflash_tui.ui.fresh import Freshener


class Refreshes:
    """Counts refreshes; each takes until `gate` opens."""

    def __init__(self) -> None:
        self.counted = asyncio.Condition()
        self.num = self.num_now = self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> None:
        async with self.counted:
            self.num += 1
            self.counted.notify_all()
        self.num_now += 1
        self.most_at_once = max(self.most_at_once, self.num_now)
        try:
            await self.gate.wait()
        finally:
            self.num_now -= 1


async def until(refreshes: Refreshes, num: int) -> None:
    async with asyncio.timeout(30), refreshes.counted:
        await refreshes.counted.wait_for(lambda: refreshes.num >= num)


async def test_it_refreshes_at_once_and_then_only_when_something_changed() -> None:
    refreshes = Refreshes()
    freshener = Freshener(refreshes, gap_s=0.01)
    running = asyncio.create_task(freshener.run())
    await until(refreshes, 1)
    await asyncio.sleep(0.1)
    assert refreshes.num == 1
    freshener.mark()
    await until(refreshes, 2)
    await asyncio.sleep(0.1)
    assert refreshes.num == 2
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_news_during_a_slow_refresh_neither_cuts_it_off_nor_is_lost() -> None:
    refreshes = Refreshes()
    refreshes.gate.clear()
    freshener = Freshener(refreshes, gap_s=0.01)
    running = asyncio.create_task(freshener.run())
    await until(refreshes, 1)
    for _ in range(50):
        freshener.mark()
        await asyncio.sleep(0)
    assert (refreshes.num, refreshes.num_now) == (1, 1)
    refreshes.gate.set()
    await until(refreshes, 2)
    await asyncio.sleep(0.1)
    assert (refreshes.num, refreshes.most_at_once) == (2, 1)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_slow_store_is_left_alone_for_twice_as_long_as_it_took() -> None:
    began: list[float] = []

    async def refresh() -> None:
        began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1)

    freshener = Freshener(refresh, gap_s=0.01)
    running = asyncio.create_task(freshener.run())
    while len(began) < 3:
        freshener.mark()
        await asyncio.sleep(0.005)
    assert min(b - a for a, b in pairwise(began)) >= 0.29
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

"""Work for the store in threads of its own, none of which is ever left behind."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

# Their own: fifty hosts that wait for their turn at the tables must not keep a screen's questions waiting.
_THREADS = ThreadPoolExecutor(4, "collect")


async def in_thread(work: Callable[[], T]) -> T:
    """`work` in a thread that is never left behind: a cancelled caller waits for its end.

    Otherwise the next owner of the store would write into the mirrors beside it.
    """
    future = asyncio.get_running_loop().run_in_executor(_THREADS, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            # Ctrl-C twice cancels twice; the thread still has to end first.
            with suppress(asyncio.CancelledError):
                await asyncio.wait({future})
        raise

"""A session in its seat, without a screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dflash_tui import config
from dflash_tui.watch import Session


@asynccontextmanager
async def seated() -> AsyncIterator[Session]:
    session = Session(config.load(), lambda run_id: None)
    await session.open()
    try:
        yield session
    finally:
        await session.close()

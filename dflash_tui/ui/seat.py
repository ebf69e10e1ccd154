"""The session's seat at the store as the screens see it: one value that each is given, so none reaches for the app.

Owns the joining of `watch.Session` and `control`; what they do stands there. Tests give the screens a scripted seat.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dflash_tui.config import Config
from dflash_tui.errors import TimedOutError
from dflash_tui.runs import Run, RunRecord
from dflash_tui.store.base import Store

if TYPE_CHECKING:
    from dflash_tui.control import LaunchRequest

# How long questions under way may take to end when the session does: the store is not closed under them.
LEAVE_PATIENCE_S = 5.0

T = TypeVar("T")


class Seat(Protocol):
    """Everything a screen may ask for. Every method raises DflashError alone."""

    config: Config

    @property
    def notices(self) -> list[str]:
        """Sentences about the opening, for a toast."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ask(self, work: Callable[[Store], T]) -> T:
        """`work` with the store, in a thread."""

    def focus(self, run_id: str | None) -> None:
        """The run on screen is polled faster."""

    def contact(self, host: str) -> str | None:
        """None: the host answers; else a sentence on since when it does not, and when it is tried next."""

    def last_launch(self) -> "LaunchRequest | None": ...

    async def launch(self, request: "LaunchRequest") -> RunRecord:
        """Returns once the run is running."""

    async def stop(self, run_id: str, *, kill: bool = False) -> Run:
        """Returns once the run has ended and that is recorded."""

    async def resume(self, run_id: str) -> Run: ...


class SessionSeat:
    """The seat of a real session: `advanced` is called on the event loop, as often as things happen."""

    def __init__(self, config: Config, advanced: Callable[[str | None], None]) -> None:
        from dflash_tui.watch import Session

        self.config = config
        self._session = Session(config, advanced)
        self._asking: set[asyncio.Task[Any]] = set()

    @property
    def notices(self) -> list[str]:
        return self._session.notices

    async def open(self) -> None:
        await self._session.open()

    async def close(self) -> None:
        if self._asking:
            await asyncio.wait(self._asking, timeout=LEAVE_PATIENCE_S)
        await self._session.close()

    async def ask(self, work: Callable[[Store], T]) -> T:
        # A thread cannot be cancelled: who stops waiting for it leaves it to `close`.
        task = asyncio.create_task(self._session.ask(work))
        self._asking.add(task)
        task.add_done_callback(self._answered)
        try:
            return await asyncio.shield(task)
        except TimeoutError as e:
            raise TimedOutError("the session that held the store has gone, and no other took its place yet") from e

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()

    def focus(self, run_id: str | None) -> None:
        self._session.focus(run_id)

    def contact(self, host: str) -> str | None:
        return self._session.contact(host)

    def last_launch(self) -> "LaunchRequest | None":
        from dflash_tui import control

        return control.last_launch()

    async def launch(self, request: "LaunchRequest") -> RunRecord:
        from dflash_tui import control

        return await control.launch(self._session, request)

    async def stop(self, run_id: str, *, kill: bool = False) -> Run:
        from dflash_tui import control

        return await control.stop(self._session, run_id, kill=kill)

    async def resume(self, run_id: str) -> Run:
        from dflash_tui import control

        return await control.resume(self._session, run_id)

"""The session's seat at the store as the screens see it: one value that each is given, so none reaches for the app.

Owns the joining of `watch.Session` and `control`; what they do stands there. Tests give the screens a scripted seat.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dflash_tui.config import Config
from dflash_tui.runs import Run, RunRecord
from dflash_tui.store.base import Store

if TYPE_CHECKING:
    from dflash_tui.control import LaunchRequest


class Seat(Protocol):
    """Everything a screen may ask for. `store` blocks: threads only. Every method raises DflashError alone."""

    config: Config

    @property
    def store(self) -> Store: ...

    @property
    def notices(self) -> list[str]:
        """Sentences about the opening, for a toast."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

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

    @property
    def store(self) -> Store:
        return self._session.store

    @property
    def notices(self) -> list[str]:
        return self._session.notices

    async def open(self) -> None:
        await self._session.open()

    async def close(self) -> None:
        await self._session.close()

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

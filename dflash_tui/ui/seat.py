"""The session's seat as the screens see it, at the store and at the hosts: one value that each screen is given.

Owns the joining of `watch.Session`, `control` and `machines`; what they do stands there. Tests give the screens a
scripted seat.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dflash_tui import config as configs
from dflash_tui.config import Addition, Config, HostSpec
from dflash_tui.errors import TimedOutError
from dflash_tui.hosts.person import introduce
from dflash_tui.runs import Run, RunRecord
from dflash_tui.store.base import Store

if TYPE_CHECKING:
    from dflash_tui.alerts import Alert
    from dflash_tui.hosts.containers import Container
    from dflash_tui.hosts.journal import Command
    from dflash_tui.machines import Look
    from dflash_tui.remote.check import Finding
    from dflash_tui.remote.plan import LaunchPlan
    from dflash_tui.requests import CloneRequest, LaunchRequest
    from dflash_tui.ui.person import SessionPerson

# How long questions under way may take to end when the session does: the store is not closed under them.
LEAVE_PATIENCE_S = 5.0

T = TypeVar("T")


class Seat(Protocol):
    """Everything a screen may ask for. Every method raises DflashError alone."""

    person: "SessionPerson | None"
    """Whom hosts ask while the seat is open."""
    alerted: "Callable[[Alert | str], None]"
    """Called on the loop with a new warning, or a sentence on one that could not be passed on."""

    @property
    def config(self) -> Config: ...

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

    async def launch(self, request: "LaunchRequest", warn: Callable[[str], None]) -> RunRecord:
        """Returns once the run is running. `warn` is told of what may go wrong all the same."""

    async def plan(self, host: str, training: dict[str, Any]) -> "LaunchPlan":
        """What a launch of a config on this host would do. Asks nobody anything."""

    async def clone(self, request: "CloneRequest", warn: Callable[[str], None]) -> RunRecord:
        """As `launch`, a run like another one."""

    async def stop(self, run_id: str, *, kill: bool = False) -> Run:
        """Returns once the run has ended and that is recorded."""

    async def resume(self, run_id: str, warn: Callable[[str], None]) -> Run: ...

    async def forget(self, run_id: str) -> None:
        """Take a run off this machine; its host is not touched."""

    async def reload(self) -> None:
        """Read config.toml again: somebody may have added a host."""

    async def look(self, host: HostSpec) -> "Look":
        """How a host stands now. Asks nobody anything; never raises what the machine is at fault for."""

    async def check(self, host: HostSpec) -> "list[Finding]":
        """All that stands for or against training there. May ask."""

    async def containers(self, host: HostSpec) -> "list[Container]":
        """Those of the node that a container is on."""

    async def add(self, addition: Addition) -> None:
        """Write a host into config.toml."""

    def commands(self) -> "list[Command]":
        """What this session ran on hosts, oldest first."""

    def collector(self) -> str | None:
        """Who else asks the hosts of live runs; None: this session does."""


class SessionSeat:
    """The seat of a real session: `advanced` is called on the event loop, as often as things happen."""

    def __init__(self, config: Config, advanced: Callable[[str | None], None]) -> None:
        from dflash_tui.watch import Session

        self.person: SessionPerson | None = None
        self.alerted: Callable[[Alert | str], None] = lambda alert: None
        self._session = Session(config, advanced)
        self._session.alerted = lambda alert: self.alerted(alert)
        self._asking: set[asyncio.Task[Any]] = set()

    @property
    def config(self) -> Config:
        return self._session.config

    @property
    def notices(self) -> list[str]:
        return self._session.notices

    async def open(self) -> None:
        introduce(self.person)
        await self._session.open()

    async def close(self) -> None:
        introduce(None)
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
        from dflash_tui import requests

        return requests.last_launch()

    async def launch(self, request: "LaunchRequest", warn: Callable[[str], None]) -> RunRecord:
        from dflash_tui import control

        self._reconsider()
        return await control.launch(self._session, request, warn)

    async def plan(self, host: str, training: dict[str, Any]) -> "LaunchPlan":
        from dflash_tui import plans

        return await plans.plan_training(self._session.config, host, training)

    async def clone(self, request: "CloneRequest", warn: Callable[[str], None]) -> RunRecord:
        from dflash_tui import control

        self._reconsider()
        return await control.clone(self._session, request, warn)

    async def stop(self, run_id: str, *, kill: bool = False) -> Run:
        from dflash_tui import control

        self._reconsider()
        return await control.stop(self._session, run_id, kill=kill)

    async def resume(self, run_id: str, warn: Callable[[str], None]) -> Run:
        from dflash_tui import control

        self._reconsider()
        return await control.resume(self._session, run_id, warn)

    async def forget(self, run_id: str) -> None:
        from dflash_tui import control

        await control.forget(self._session, run_id)

    async def reload(self) -> None:
        self._session.config = await asyncio.to_thread(configs.load)

    async def look(self, host: HostSpec) -> "Look":
        from dflash_tui import machines

        return await machines.look_alone(host)

    async def check(self, host: HostSpec) -> "list[Finding]":
        from dflash_tui import machines

        self._reconsider()
        known = await self.ask(lambda store: frozenset(run.run_id for run in store.runs()))
        findings = await machines.check(host, known)
        # It may have been silent only until a person said something.
        await self._session.refresh()
        return findings

    async def containers(self, host: HostSpec) -> "list[Container]":
        from dflash_tui import machines

        return await machines.containers(host)

    async def add(self, addition: Addition) -> None:
        await asyncio.to_thread(addition.write)
        await self.reload()

    def commands(self) -> "list[Command]":
        from dflash_tui.hosts import journal

        return journal.commands()

    def collector(self) -> str | None:
        from dflash_tui.store.lock import holder

        return None if self._session.is_owner else holder()

    def _reconsider(self) -> None:
        """A person does something by hand: what he would not say before, he may say now."""
        if self.person:
            self.person.reconsider()

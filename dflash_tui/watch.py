"""The conductor: a session's seat at the store, and what it does there.

Whoever takes the lock is the owner: it collects from every host (`collect.py`) and answers all others. Everyone else is
its client, and takes over when it leaves. The screens and the commands see one Session and need not know which it is.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dflash_tui import config as configs
from dflash_tui import paths
from dflash_tui.alerts import Alert, Alerts
from dflash_tui.config import Config, HostSpec
from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.gathering import Gathering
from dflash_tui.runs import Run, RunState
from dflash_tui.store.base import Store, StoreOptions
from dflash_tui.store.client import OwnerGoneError, StoreClient, has_owner
from dflash_tui.store.database import Database
from dflash_tui.store.lock import holder
from dflash_tui.store.owner import Owner, owner_gone, take_ownership
from dflash_tui.threads import in_thread

if TYPE_CHECKING:
    from dflash_tui.collect import HostCollector

# With the start of the interpreter, a person is told within 3 s.
BUSY_AFTER_S = 2.0
_RETRY_S = 0.05
_RETAKE_S = 1.0
# As a client: how often the owner is asked what is new. As the owner: how often config.toml is looked at, and new hosts
# and runs are looked for, without being told.
_ATTEND_S = 0.5
_REGROUP_S = 5.0

T = TypeVar("T")


class Session:
    """`advanced` is called on the loop with the id of a run whose rows or state changed, None for the list itself."""

    def __init__(self, config: Config, advanced: Callable[[str | None], None]) -> None:
        self.config = config
        self.notices: list[str] = []
        self.store: Store = StoreClient()
        self.alerted: Callable[[Alert | str], None] = lambda alert: None
        """Called on the loop with each new warning, and with a sentence when the command for it failed."""
        self._told_advanced = advanced
        self._alerts = Alerts(config.alerts, self._ask_to_the_end, self._alert, self._alert)
        self._options = _options_of(config)
        self._config_state = _state_of_config()
        self._owner: Owner | None = None
        self._collectors: dict[str, HostCollector] = {}
        self._focus: str | None = None
        self._hurried: set[str | None] = set()
        self._woken = asyncio.Event()
        self._num_seats = 0
        self._life: asyncio.Task[None] | None = None
        self._alerting: asyncio.Task[None] | None = None

    @property
    def is_owner(self) -> bool:
        return self._owner is not None

    @property
    def place(self) -> Path:
        return paths.data_dir()

    async def open(self) -> None:
        """Take a seat; StoreBusyError within 3 s when somebody holds the store who does not answer."""
        await self._take_seat()
        self._life = asyncio.create_task(self._live())
        self._alerting = asyncio.create_task(self._alerts.run(lambda: self.is_owner))

    async def close(self) -> None:
        """Leave the seat to whoever waits. Runs are not touched."""
        if self._alerting:
            self._alerting.cancel()
            await asyncio.wait({self._alerting})
        if self._life:
            self._life.cancel()
            await asyncio.wait({self._life})
        if self._owner:
            owner, self._owner = self._owner, None
            await owner.__aexit__(None, None, None)
        for task in (self._life, self._alerting):
            if task and not task.cancelled():
                task.result()

    async def ask(self, work: Callable[[Store], T]) -> T:
        """`work` with the store, in a thread; once more if the owner went away meanwhile and another took over."""
        seat = self._num_seats
        try:
            return await asyncio.to_thread(work, self.store)
        except OwnerGoneError:
            deadline = time.monotonic() + 3 * BUSY_AFTER_S
            while self._num_seats == seat:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_RETRY_S)
            return await asyncio.to_thread(work, self.store)

    async def _ask_to_the_end(self, work: Callable[[Store], T]) -> T:
        """As `ask`, but whoever is cancelled waits for the answer: nobody closes the store under it."""
        return await in_thread(partial(work, self.store))

    def focus(self, run_id: str | None) -> None:
        """The run on screen: it is polled faster, the others slower."""
        self._focus = run_id
        self._woken.set()

    async def refresh(self) -> None:
        """Look at the hosts now, whoever collects, also at one that is silent: a person has done something there."""
        await self.ask(lambda store: store.refresh(None))

    def contact(self, host: str) -> str | None:
        """None: the host answers, or we are not the one who asks it; else a sentence on its silence."""
        found = self._collectors.get(host)
        return str(found.silence) if found and found.silence else None

    def _advanced(self, run_id: str | None) -> None:
        if run_id is not None:
            self._alerts.mark(run_id)
        self._told_advanced(run_id)

    def _alert(self, alert: Alert | str) -> None:
        self.alerted(alert)

    async def _take_seat(self) -> None:
        deadline = time.monotonic() + BUSY_AFTER_S
        while True:
            owner = await asyncio.to_thread(take_ownership, self.notices.append, self._options)
            if owner:
                self._owner = await owner.__aenter__()
                self.store = owner.database
                owner.database.on_refresh = self._hurry_from(asyncio.get_running_loop())
                break
            if await asyncio.to_thread(has_owner):
                self.store = StoreClient()
                break
            if time.monotonic() > deadline:
                raise StoreBusyError(f"the store is held by {holder()}, which does not answer; end it, or try again")
            await asyncio.sleep(_RETRY_S)
        self._num_seats += 1

    async def _live(self) -> None:
        while True:
            if self._owner:
                await self._conduct(self._owner.database)
            await self._attend()
            try:
                await self._take_seat()
            except (DflashError, OSError):
                # Somebody holds the store and does not answer yet: every question asked meanwhile says so.
                await asyncio.sleep(_RETAKE_S)
            self._advanced(None)

    async def _attend(self) -> None:
        """As a client, until the owner has gone: find out what advanced, keep the run on screen fresh."""
        gone = asyncio.create_task(owner_gone())
        seen: dict[str, Run] = {}
        try:
            while not gone.done():
                await self._reread()
                with suppress(DflashError):
                    if focus := self._focus:
                        await asyncio.to_thread(self.store.refresh, focus)
                    seen = self._tell_changes(seen, await asyncio.to_thread(self.store.runs))
                await asyncio.wait({gone}, timeout=_ATTEND_S)
        finally:
            gone.cancel()

    def _tell_changes(self, seen: dict[str, Run], runs: list[Run]) -> dict[str, Run]:
        found = {run.run_id: run for run in runs}
        if found.keys() != seen.keys():
            self._advanced(None)
        for run_id, run in found.items():
            before = seen.get(run_id)
            if before and (before.step, before.state, before.attempt) != (run.step, run.state, run.attempt):
                self._advanced(run_id)
        return found

    async def _conduct(self, database: Database) -> None:
        """As the owner, until cancelled: one collector a host that has live runs."""
        tasks: dict[str, asyncio.Task[None]] = {}
        gathering = Gathering(database)
        try:
            while True:
                await self._reread()
                with suppress(DflashError):
                    self._group(await in_thread(partial(_live_runs, database)), database, gathering)
                for host, collector in self._collectors.items():
                    task = tasks.get(host)
                    if task and task.done() and (error := task.exception()):
                        collector.fail(error)
                    if task is None or task.done():
                        tasks[host] = asyncio.create_task(collector.collect())
                await self._rest()
        finally:
            for task in tasks.values():
                task.cancel()
            while any(not task.done() for task in tasks.values()):
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(tasks.values())
            await gathering.close()

    async def _rest(self) -> None:
        """Until the hosts are to be looked at again. What is asked meanwhile is judged by config.toml as it is."""
        until = time.monotonic() + _REGROUP_S
        while not self._woken.is_set() and time.monotonic() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ATTEND_S):
                    await self._woken.wait()
            await self._reread()
        self._woken.clear()

    async def _reread(self) -> None:
        """Take up what was changed in config.toml, but for aliases: rows that are in the store follow the old ones."""
        if (found := _state_of_config()) == self._config_state:
            return
        self._config_state = found
        try:
            config = await in_thread(configs.load)
        except DflashError as e:
            self._alert(f"{e}; until then all holds as it was")
            return
        self.config = config
        self._alerts.spec = config.alerts
        self._options = replace(_options_of(config), aliases=self._options.aliases)
        if self._owner:
            self._owner.database.options = self._options
        if self._focus:
            self._advanced(self._focus)

    def _group(self, live: dict[str, list[Run]], database: Database, gathering: Gathering) -> None:
        """Tell each host's collector which runs are live now, and what is wanted at once."""
        for host in live.keys() - self._collectors.keys():
            from dflash_tui.collect import HostCollector

            self._collectors[host] = HostCollector(partial(self._spec, host), database, gathering, self._advanced)
        hurried, self._hurried = self._hurried, set()
        for host, collector in self._collectors.items():
            collector.follow(live.get(host, []), self._focus)
            for run_id in hurried:
                collector.hurry(run_id)

    def _spec(self, host: str) -> HostSpec:
        """As config.toml has it. A host that is not known was added by somebody else since it was read."""
        if host not in self.config.hosts:
            self.config = configs.load()
        return self.config.host(host)

    def _hurry_from(self, loop: asyncio.AbstractEventLoop) -> Callable[[str | None], None]:
        """What a thread calls to have the hosts asked now."""

        def hurry(run_id: str | None) -> None:
            loop.call_soon_threadsafe(self._hurry, run_id)

        return hurry

    def _hurry(self, run_id: str | None) -> None:
        self._hurried.add(run_id)
        self._woken.set()


def _options_of(config: Config) -> StoreOptions:
    return StoreOptions(config.aliases, config.panels.length_edges, config.checks.thresholds, config.checks.baseline)


def _state_of_config() -> tuple[int, int, int] | None:
    """What changes whenever config.toml does."""
    try:
        found = paths.config_file().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _live_runs(database: Database) -> dict[str, list[Run]]:
    """The live runs of each host. In a thread: what collects is loaded here once there is something to collect, as it
    takes longer than the loop can wait.
    """
    live: dict[str, list[Run]] = defaultdict(list)
    for run in database.runs():
        if run.host is not None and _is_live(run):
            live[run.host].append(run)
    if live:
        import_module("dflash_tui.collect")
    return live


def _is_live(run: Run) -> bool:
    return run.state != RunState.ABSENT and not RunState(run.state).is_over

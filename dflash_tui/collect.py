"""One host's collector: what its live runs wrote goes into their mirrors, then into the tables, and states are noted.

Owns what a host that does not answer means: its runs keep the state they had, and there is a
sentence on since when it is silent. Which runs are live, and on which hosts, is the conductor's to say (`watch.py`).
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from dflash_tui import script_log
from dflash_tui.config import HostSpec
from dflash_tui.copies import Copies
from dflash_tui.errors import AuthFailedError, DflashError, HostError, HostKeyError
from dflash_tui.gathering import Gathering
from dflash_tui.gpu_watch import GpuWatch
from dflash_tui.pace import Pace
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.follow import Heard, log_source, sweep
from dflash_tui.remote.status import RunStatus
from dflash_tui.runs import Cursor, GpuSample, Run, RunEvent, RunRecord, RunState
from dflash_tui.store.base import Store
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import Mirror
from dflash_tui.text import duration
from dflash_tui.threads import in_thread

BACKOFF_MAX_S = 60.0
# A host that does not let us in has said so; knocking on would only have us banned there. A person can hurry it.
REFUSED_S = 600.0
# The time of last contact is shown in seconds; writing it more often than this would only grow the database's log.
CONTACT_EVERY_S = 5.0
# A link that held for so long counts as one that works.
HEALTHY_S = 60.0
# How long a launch whose answer was lost may take to show on its host.
START_PATIENCE_S = 120.0

Seen = tuple[str | int | None, ...]
_TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Silence:
    """A host that does not answer: since when (monotonic), why, and when it is tried again."""

    since: float
    next_try: float
    why: str

    def __str__(self) -> str:
        now = time.monotonic()
        wait = max(0.0, self.next_try - now)
        return f"no contact for {duration(now - self.since)}, next try in {duration(wait)}: {self.why}"


class HostCollector:
    """Polls the live runs of one host through one agent; no agent stays when there is none.

    `spec` is asked for at each connect: a host may have left config.toml since its run was launched.
    """

    def __init__(
        self,
        spec: Callable[[], HostSpec],
        database: Database,
        gathering: Gathering,
        advanced: Callable[[str | None], None],
    ) -> None:
        self.silence: Silence | None = None
        self._spec = spec
        self._database = database
        self._gathering = gathering
        self._advanced = advanced
        self._pace = Pace()
        self._runs: dict[str, Run] = {}
        self._starting: dict[str, float] = {}
        self._seen: dict[str, Seen] = {}
        self._contact: dict[str, float] = {}
        self._copies = Copies()
        # Whose mirrors hold more than the tables.
        self._behind: set[str] = set()
        self._gpus = GpuWatch()
        self._woken = asyncio.Event()
        self._retry = asyncio.Event()

    def follow(self, runs: Iterable[Run], focus: str | None) -> None:
        """These are the live runs now; `focus` is the one on screen. New ones are asked for at once."""
        self._runs = {run.run_id: run for run in runs}
        # What the store knows otherwise is told anew, and its mirror looked at: it was forgotten and found again, say.
        known = {run_id: (run.state, _TROUBLE) for run_id, run in self._runs.items()}
        self._seen = {run_id: seen for run_id, seen in self._seen.items() if seen[0] in known.get(run_id, ())}
        self._copies.limit_to(self._seen)
        self._behind &= self._runs.keys()
        if self._pace.follow(self._runs, focus):
            self._woken.set()

    def hurry(self, run_id: str | None) -> None:
        """Ask for this run now. None: for all, and of a host that is silent too, whose next try is still to come."""
        self._pace.hurry(None if run_id is None else [run_id])
        if run_id is None:
            self._retry.set()
        self._woken.set()

    def fail(self, error: BaseException) -> None:
        """What ended `collect` though nothing should: it is told like a silence, and collecting begins again."""
        self.silence = Silence(time.monotonic(), time.monotonic(), f"collecting failed ({error!r})")
        self._advanced(None)

    async def collect(self) -> None:
        """Until cancelled."""
        tries = 0
        while True:
            await self._wait_for_work()
            begun = time.monotonic()
            try:
                async with agent_on(self._spec()) as agent:
                    begun = time.monotonic()
                    await self._poll(agent)
            except DflashError as e:
                # One that answers and is lost again at once, over and over, is not asked without a pause.
                tries = 1 if time.monotonic() - begun > HEALTHY_S else tries + 1
                await self._back_off(tries, e)

    async def _wait_for_work(self) -> None:
        while not self._pace:
            await _wait(self._woken, None)

    async def _back_off(self, tries: int, error: DflashError) -> None:
        # Full jitter: fifty sessions that lost one host must not come back in step.
        is_refused = isinstance(error, (AuthFailedError, HostKeyError))
        wait_s = random.uniform(0.5, 1.0) * (REFUSED_S if is_refused else min(BACKOFF_MAX_S, 2.0 ** (tries - 1)))
        since = self.silence.since if self.silence else time.monotonic()
        self.silence = Silence(since, time.monotonic() + wait_s, str(error))
        self._advanced(None)
        await _wait(self._retry, wait_s)

    async def _poll(self, agent: AgentClient) -> None:
        while self._pace:
            if due := self._pace.due():
                await self._sweep(agent, due)
            else:
                await _wait(self._woken, self._pace.wait_s())

    async def _sweep(self, agent: AgentClient, run_ids: list[str]) -> None:
        begun = time.monotonic()
        self._pace.begin(run_ids)
        wanted, logs = await self._wanted(run_ids)
        heard = await sweep(agent, wanted, logs=logs)
        self._pace.sweep_s = time.monotonic() - begun
        if self.silence:
            self.silence = None
            self._advanced(None)
        changed, at_once = await self._take(heard, wanted)
        self._pace.hurry(at_once)
        for run_id in changed:
            self._advanced(run_id)
        if seen := await self._gpus.look(agent, list(self._runs)):
            await in_thread(partial(self._keep_gpus, seen))

    def _keep_gpus(self, seen: Mapping[str, Sequence[GpuSample]]) -> None:
        with self._database.mirroring, suppress(DflashError):
            # A store that takes nothing is told by what matters more.
            self._database.gpus(seen)

    async def _wanted(self, run_ids: list[str]) -> tuple[dict[str, dict[str, Cursor]], dict[str, str | None]]:
        """How far each run was read, and where the log of one lies that our trainer did not write."""
        scripts = [run_id for run_id in run_ids if self._has_own_log(run_id)]
        if self._copies.know(run_ids) and not scripts:
            return self._copies.cursors(run_ids), {}
        return await in_thread(lambda: (self._copies.cursors(run_ids), _log_sources(scripts)))

    def _has_own_log(self, run_id: str) -> bool:
        run = self._runs.get(run_id)
        return run is not None and run.kind in script_log.KINDS

    async def _take(
        self, heard: Mapping[str, Heard | HostError], wanted: Mapping[str, Mapping[str, Cursor]]
    ) -> tuple[list[str], set[str]]:
        """Bytes into the mirrors, lines into the tables, new states into the events; `wanted` is what was asked.

        The runs that changed, and those to be asked again at once: there is more, or nothing of its log was read yet.
        """
        troubles = {run_id: str(what) for run_id, what in heard.items() if isinstance(what, HostError)}
        answers = {run_id: what for run_id, what in heard.items() if isinstance(what, Heard)}
        fresh = {run_id: what for run_id, what in answers.items() if what.is_news or self._has_own_log(run_id)}
        grown, found, unkept = await in_thread(partial(self._keep, fresh)) if fresh else (set(), set(), {})
        troubles |= unkept
        more = {run_id for run_id, what in answers.items() if what.has_more}
        news = {run_id for run_id, what in answers.items() if self._seen.get(run_id) != _seen(what.status)}
        # One whose lines could not be taken in is tried again, grown or not.
        self._behind |= grown
        due = self._due_contact(answers.keys() - troubles.keys())
        if self._behind or due:
            is_urgent = self._pace.focus in grown or bool(more or news)
            troubles |= await self._gathering.take_in(self._behind & answers.keys(), due, is_urgent=is_urgent)
            self._behind -= answers.keys() - troubles.keys()
        noting = {run_id: answers[run_id] for run_id in news - troubles.keys() - found}
        noted = await in_thread(partial(self._note_all, noting, wanted, troubles)) if noting or troubles else []
        return [run_id for run_id in heard if run_id in noted or run_id in grown - troubles.keys()], more | found

    def _keep(self, answers: Mapping[str, Heard]) -> tuple[set[str], set[str], dict[str, str]]:
        """The runs whose mirrors grew, those whose log was only just found, and by run why its bytes were not kept."""
        grown, found, troubles = set(), set(), {}
        with self._database.mirroring:
            for run_id, what in answers.items():
                # Whoever was forgotten while the host was asked has no record any more.
                if not self._copies.mirror(run_id).exists():
                    continue
                try:
                    # Before the bytes are kept: whatever ends us in between, the first ones are seen again.
                    if self._has_own_log(run_id) and self._settle(run_id, what):
                        found.add(run_id)
                    if self._copies.keep(run_id, what):
                        grown.add(run_id)
                except DflashError as e:
                    troubles[run_id] = str(e)
        return grown, found, troubles

    def _settle(self, run_id: str, what: Heard) -> bool:
        """Note which file is the run's log, and how it reads, once that can be known; whether it is to be read now."""
        record = Mirror(run_id).read_record()
        found = script_log.settled(record, what.chunks) if record else None
        if record is None or found is None or found == record:
            return False
        self._database.register_run(found)
        return log_source(found) != log_source(record)

    def _note_all(
        self,
        answers: Mapping[str, Heard],
        wanted: Mapping[str, Mapping[str, Cursor]],
        troubles: Mapping[str, str],
    ) -> list[str]:
        """New states, and what is wrong. One run's trouble is no other's: if the store itself fails, all wait."""
        with self._database.mirroring:
            noted = [
                run_id
                for run_id, what in answers.items()
                if _exists(run_id) and self._note_state(run_id, what, wanted[run_id])
            ]
            return noted + [
                run_id for run_id, words in troubles.items() if _exists(run_id) and self._note_trouble(run_id, words)
            ]

    def _note_state(self, run_id: str, what: Heard, asked: Mapping[str, Cursor]) -> bool:
        # An end is noted when the log is complete: who waits for the end finds every step.
        if what.status.state.is_over and (what.has_more or not self._copies.hold(run_id, what, asked)):
            return False
        if self._is_still_starting(run_id, what.status):
            return False
        return self._note(run_id, _seen(what.status), state_event(what.status))

    def _is_still_starting(self, run_id: str, status: RunStatus) -> bool:
        """Whether the host knows less than we: an attempt that was asked for and is not there yet.

        The answer to its launch may be lost and the launch still under way; after a while it never happened.
        """
        run = self._runs.get(run_id)
        if run is None or run.state != RunState.STARTING or (status.attempt or 0) >= (run.attempt or 1):
            self._starting.pop(run_id, None)
            return False
        since = self._starting.setdefault(run_id, time.monotonic())
        return time.monotonic() - since < START_PATIENCE_S

    def _note_trouble(self, run_id: str, words: str) -> bool:
        return self._note(run_id, (_TROUBLE, words), RunEvent(time.time(), "note", text=words))

    def _due_contact(self, run_ids: Iterable[str]) -> list[str]:
        """Those of which it has not been noted lately that their host answers."""
        now = time.monotonic()
        due = [run_id for run_id in run_ids if now - self._contact.get(run_id, -math.inf) >= CONTACT_EVERY_S]
        self._contact |= dict.fromkeys(due, now)
        return due

    def _note(self, run_id: str, seen: Seen, event: RunEvent) -> bool:
        if self._seen.get(run_id) == seen:
            return False
        self._database.event(run_id, event)
        self._seen[run_id] = seen
        return True


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    """Until `event`, which is cleared, or until `seconds` are over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()


def _exists(run_id: str) -> bool:
    """Whether it was not forgotten meanwhile."""
    return Mirror(run_id).exists()


def _log_sources(run_ids: list[str]) -> dict[str, str | None]:
    records = {run_id: Mirror(run_id).read_record() for run_id in run_ids}
    return {run_id: log_source(record) for run_id, record in records.items() if record}


def _seen(status: RunStatus) -> Seen:
    return status.state, status.reason, status.code, status.signal, status.attempt, status.pid


def note_run(record: RunRecord, event: RunEvent, store: Store) -> None:
    """Make a run known to a store, and how it stands."""
    store.register_run(record)
    store.event(record.run_id, event)


def state_event(status: RunStatus) -> RunEvent:
    """What a host says of a run, as an event that happened now."""
    return RunEvent(
        time=time.time(),
        kind="state",
        state=status.state,
        reason=status.reason,
        code=status.code,
        signal=status.signal,
        attempt=status.attempt,
        pid=status.pid,
        text=status.note,
    )

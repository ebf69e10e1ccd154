"""Runs that were there before us: a log that somebody else's run writes, and the runs of a host that nobody knows here.

Nothing is started or changed on a host but the folder of a run that is attached to.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dflash_tui.collect import note_run, state_event
from dflash_tui.errors import DflashError, UnreachableError
from dflash_tui.masking import masked
from dflash_tui.remote import adopt
from dflash_tui.remote.adopt import FoundLog
from dflash_tui.remote.client import agent_on
from dflash_tui.remote.found import runs_of
from dflash_tui.remote.status import RunStatus
from dflash_tui.runs import RunEvent, RunRecord, RunState, new_run_id
from dflash_tui.script_log import followable, name_of_log
from dflash_tui.watch import Session


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """`log` is a path on the host: absolute, or from its workdir or home (`~`)."""

    host: str
    log: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Attached:
    record: RunRecord
    status: RunStatus
    found: FoundLog


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan of a host brought here, and what ended it early."""

    host: str
    brought: tuple[str, ...]
    trouble: DflashError | None = None


async def attach(session: Session, request: AttachRequest) -> Attached:
    """Follow a log that is written by what we did not start, as a run; returns once it is registered.

    HostError if there is no such log, UsageError for one that cannot be followed.
    """
    async with agent_on(session.config.host(request.host)) as agent:
        found = await adopt.look(agent, request.log)
        shape = followable(found)
        name = request.name or name_of_log(found.path)
        config = {"how": found.how, "argv": masked(found.process.argv) if found.process else None}
        created = time.time() - (found.process.age_s if found.process else 0.0)
        record = RunRecord(new_run_id(name), name, "adopted", created=created, config=config, shape=shape)
        adopted = await adopt.adopt(agent, record, found)

    await session.ask(partial(note_run, adopted.record, state_event(adopted.status)))
    await session.refresh()
    return Attached(adopted.record, adopted.status, found)


async def scan(session: Session, host: str, tell: Callable[[str], None]) -> Scanned:
    """Find the runs that lie on a host and that the store does not know, and bring them here with all they logged.

    Returns once what is over is here to its last line, and what lives is followed.
    """
    brought: list[str] = []
    try:
        async with agent_on(session.config.host(host)) as agent:
            found = await runs_of(agent, tell)
        known = {run.run_id: run for run in await session.ask(lambda store: store.runs())}
        for one in found:
            before = known.get(one.record.run_id)
            if before and (before.host is None or before.host in session.config.hosts):
                continue

            # As if it were starting: so the collector asks for all of it, and notes its end behind its last line.
            event = RunEvent(time.time(), "state", RunState.STARTING, attempt=one.status.attempt)
            await session.ask(partial(note_run, one.record, event))
            brought.append(one.record.run_id)
        for one in found:
            if one.record.run_id in brought:
                tell(f"{one.record.run_id}: {one.status.state} on {host}, brought here")
                await _wait_until_heard(session, one.record.run_id, host)
        if not brought:
            told = f"all of its runs ({len(found)}) are known here" if found else "no run lies there"
            tell(f"{host}: nothing new: {told}")
    except DflashError as e:
        return Scanned(host, tuple(brought), e)
    return Scanned(host, tuple(brought))


async def _wait_until_heard(session: Session, run_id: str, host: str) -> None:
    """Until the collector has noted how a run stands: of one that is over, behind the last line of its log.

    UnreachableError when its host has fallen silent.
    """
    while (await session.ask(lambda store: store.detail(run_id))).run.state == RunState.STARTING:
        await session.refresh()
        await asyncio.sleep(0.2)
        if silence := session.contact(host):
            raise UnreachableError(f"{host}: {silence}; an open session or `dflash-tui watch` fetches the rest")

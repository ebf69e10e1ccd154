"""What a person does to runs: launch, stop, resume. The one place where remote and store are put together for it.

The commands and the screens both come here. Asks nobody and prints nothing: who calls has confirmed.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dflash_tui import paths, recipes
from dflash_tui.collect import state_event
from dflash_tui.config import Config
from dflash_tui.errors import DflashError, HostError, LinkLostError, UsageError
from dflash_tui.hosts import open_host
from dflash_tui.remote import launch as remote
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.status import RunStatus
from dflash_tui.runs import Run, RunEvent, RunRecord, RunState, new_run_id
from dflash_tui.store.base import RunDetail, Store
from dflash_tui.watch import Session

# What the collector may take to bring the last lines of a run that has ended, before we record the end ourselves.
RECORD_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """`recipe` is a bundled name or a .toml file's path, `settings` are key=value words laid over it."""

    recipe: str
    host: str
    name: str | None = None
    settings: tuple[str, ...] = ()


def last_launch() -> LaunchRequest | None:
    """What was launched last from this machine, for `L`."""
    try:
        return msgspec.json.decode(_last_launch_file().read_bytes(), type=LaunchRequest)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _last_launch_file() -> Path:
    return paths.data_dir() / "last_launch.json"


async def launch(session: Session, request: LaunchRequest) -> RunRecord:
    """Check the recipe, push code and config, start the run; returns once it is running and registered.

    Errors: UsageError for the recipe or the host's name, HostError for what the machine lacks, each before anything is
    started; DflashError when the trainer ended at once (the run is registered then, with its state).
    """
    recipe = recipes.load(request.recipe, request.settings)
    session.config.host(request.host)
    name = request.name or recipe.name
    record = RunRecord(new_run_id(name), name, "train", host=request.host, created=time.time(), config=recipe.config)
    async with _agent(session.config, request.host) as agent:
        try:
            started = await remote.launch(agent, record, recipe.config, recipe=recipe.name)
        except LinkLostError:
            # Whether it runs is not known: the collector finds out, and nobody starts it twice.
            await _register(session, record, RunEvent(time.time(), "state", RunState.STARTING, attempt=1))
            raise
    await _register(session, started.record, state_event(started.status))
    await asyncio.to_thread(_remember, request)
    _refuse_failed_start(name, started.status)
    return started.record


async def resume(session: Session, run_id: str) -> Run:
    """Go on from the newest checkpoint, as the run's next attempt; errors as in `launch`."""
    detail = await session.ask(lambda store: store.detail(run_id))
    async with _agent(session.config, _host_of(detail, "resumed")) as agent:
        started = await remote.resume(agent, run_id)
    await _register(session, started.record, state_event(started.status))
    _refuse_failed_start(detail.run.name, started.status)
    return (await session.ask(lambda store: store.detail(run_id))).run


async def stop(session: Session, run_id: str, *, grace_s: float | None = None, kill: bool = False) -> Run:
    """End a run: it may save for the grace (default: the config's), with `kill` none.

    Returns once nothing of it lives and the end, with all the lines before it, is in the store.
    """
    detail = await session.ask(lambda store: store.detail(run_id))
    grace_s = session.config.stop.grace_s if grace_s is None else grace_s
    async with _agent(session.config, _host_of(detail, "stopped")) as agent:
        status = await remote.stop(agent, run_id, grace_s=grace_s, kill=kill)
    return await _wait_until_recorded(session, run_id, status)


async def _wait_until_recorded(session: Session, run_id: str, status: RunStatus) -> Run:
    deadline = time.monotonic() + RECORD_PATIENCE_S
    await session.refresh(run_id)
    while True:
        run = (await session.ask(lambda store: store.detail(run_id))).run
        if (run.state, run.attempt) == (status.state, status.attempt):
            return run
        if time.monotonic() > deadline:
            await session.ask(lambda store: store.event(run_id, state_event(status)))
        await asyncio.sleep(0.1)


async def _register(session: Session, record: RunRecord, event: RunEvent) -> None:
    def write(store: Store) -> None:
        store.register_run(record)
        store.event(record.run_id, event)

    await session.ask(write)
    await session.refresh(record.run_id)


@asynccontextmanager
async def _agent(config: Config, name: str) -> AsyncIterator[AgentClient]:
    spec = config.host(name)
    host = open_host(spec)
    try:
        async with AgentClient.open(host, spec) as agent:
            yield agent
    finally:
        await host.close()


def _host_of(detail: RunDetail, done: str) -> str:
    if detail.record.host is None:
        raise UsageError(f"{detail.run.run_id} was ingested from a file: no host runs it, so it cannot be {done}")
    return detail.record.host


def _refuse_failed_start(name: str, status: RunStatus) -> None:
    if status.state is RunState.FAILED:
        why = status.note or status.reason or "it said nothing"
        raise DflashError(f"{name} ended at once ({status.reason}, exit code {status.code}): {why}")


def _remember(request: LaunchRequest) -> None:
    file = _last_launch_file()
    try:
        file.write_bytes(msgspec.json.encode(request))
    except OSError as e:
        raise HostError(f"{file}: cannot be written: {e.strerror}") from e

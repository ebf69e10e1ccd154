"""What a person does to runs: launch, stop, resume. The one place where remote and store are put together for it.

The commands and the screens both come here. Asks nobody and prints nothing: who calls has confirmed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from dflash_tui import recipes, script_log
from dflash_tui.collect import note_run, state_event
from dflash_tui.errors import DflashError, HostError, LinkLostError, TimedOutError, UsageError
from dflash_tui.masking import masked
from dflash_tui.plans import clone_basis
from dflash_tui.remote import launch as remote
from dflash_tui.remote import script_run
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.launch import LaunchedRun
from dflash_tui.remote.machine import begin_look, taken_gpus
from dflash_tui.remote.scripts import read_script
from dflash_tui.remote.status import RunStatus
from dflash_tui.requests import CloneRequest, LaunchRequest, ScriptRequest, env_of, remember
from dflash_tui.runs import Run, RunEvent, RunRecord, RunState, new_run_id
from dflash_tui.store.base import RunDetail, Store
from dflash_tui.store.mirror import Mirror
from dflash_tui.text import numbered, visible
from dflash_tui.watch import Session

# What the collector may take to bring the last lines of a run that has ended.
RECORD_PATIENCE_S = 30.0


def _ignore(sentence: str) -> None:
    """For who does not want to know."""


Register = Callable[[RunRecord, int], Awaitable[None]]


async def launch(session: Session, request: LaunchRequest, warn: Callable[[str], None] = _ignore) -> RunRecord:
    """Check the recipe, push code and config, start the run; returns once it is running and registered.

    `warn` is told of GPUs that somebody uses already.
    Errors: UsageError for the recipe, what it names and the host's name, HostError for what the machine lacks, each
    before anything is started; DflashError when the trainer ended at once (the run is registered then, with its state).
    """
    recipe = recipes.load(request.recipe, request.settings)
    session.config.host(request.host)
    env = env_of(request)
    name = request.name or recipe.name
    record = RunRecord(new_run_id(name), name, "train", host=request.host, created=time.time(), config=recipe.config)
    refused = RunEvent(time.time(), "state", RunState.ABSENT)
    async with (
        agent_on(session.config.host(request.host)) as agent,
        _registering(session, record.run_id, refused) as register,
    ):
        await begin_look(agent)
        started = await remote.launch(agent, record, recipe.config, recipe=recipe.name, env=env, before=register)
        await _warn_of_gpus(agent, env, warn)
    await asyncio.to_thread(remember, request)
    await _record_start(session, started)
    return started.record


async def launch_script(session: Session, request: ScriptRequest, warn: Callable[[str], None] = _ignore) -> RunRecord:
    """Push a script and run it as a run; else as `launch`."""
    script, env = read_script(request.file), env_of(request)
    name = request.name or request.file.stem
    config = {"script": script.name, "args": masked(request.args)}
    record = RunRecord(new_run_id(name), name, "script", host=request.host, created=time.time(), config=config)
    refused = RunEvent(time.time(), "state", RunState.ABSENT)
    async with (
        agent_on(session.config.host(request.host)) as agent,
        _registering(session, record.run_id, refused) as register,
    ):
        await begin_look(agent)
        spec = await script_run.plan_script(agent, script, request.args, log=request.log, env=env)
        started = await script_run.launch_script(agent, record, script, spec, before=register)
        await _warn_of_gpus(agent, env, warn)
    await _record_start(session, started)
    return started.record


async def _warn_of_gpus(agent: AgentClient, env: dict[str, str], warn: Callable[[str], None]) -> None:
    name = "CUDA_VISIBLE_DEVICES"
    # The run is started: whatever is wrong with a tool there must not look like a failure of that.
    with suppress(HostError):
        for sentence in await taken_gpus(agent, env.get(name, agent.spec.env.get(name))):
            warn(sentence)


async def clone(session: Session, request: CloneRequest, warn: Callable[[str], None] = _ignore) -> RunRecord:
    """Launch a run like another one, its child; else as `launch`.

    On the same host it is given the same environment. UsageError for a run that was not started from here.
    """
    record = (await session.ask(lambda store: store.detail(request.run_id))).record
    async with clone_basis(session.config, record, request) as basis:
        agent, name = basis.agent, request.name or record.name
        child = RunRecord(
            new_run_id(name),
            name,
            record.kind,
            host=agent.spec.name,
            created=time.time(),
            config=basis.config,
            parent=record.run_id,
        )
        refused = RunEvent(time.time(), "state", RunState.ABSENT)
        async with _registering(session, child.run_id, refused) as register:
            await begin_look(agent)
            if basis.script is None or basis.spec is None:
                started = await remote.launch(agent, child, basis.config, recipe=None, env=basis.env, before=register)
            else:
                started = await script_run.launch_script(agent, child, basis.script, basis.spec, before=register)
            await _warn_of_gpus(agent, basis.env, warn)
    await _record_start(session, started)
    return started.record


def stranger(detail: RunDetail) -> str:
    """Of a run that was not started from here, which process a stop would end; behind the question, else ""."""
    if detail.record.kind != "adopted" or detail.pid is None:
        return ""
    config = detail.record.config or {}
    how = "has its log open" if config.get("how") == "open" else "was only guessed to write its log"
    words = visible(" ".join(map(str, config.get("argv") or ()))[:400])
    return f" It was not started from here. Process {detail.pid}, which {how}, is ended with its children: {words}."


def forget_question(run: Run, num_rows: int) -> str:
    """What a person is asked before `forget`."""
    is_alive = run.host and not RunState(run.state).is_over and run.state != RunState.ABSENT
    there = (
        f"It goes on, on {run.host}, where `hosts scan` finds it again." if is_alive else f"{run.host} keeps its own."
    )
    question = f"Forget {run.run_id} ({run.state}), its {numbered(num_rows, 'row')} and its mirror here?"
    return f"{question} {there}" if run.host else question


async def forget(session: Session, run_id: str) -> None:
    """Take a run out of the store, with its mirror. Its host is not touched: what runs there goes on."""
    await session.ask(lambda store: store.forget(run_id))


async def resume(session: Session, run_id: str, warn: Callable[[str], None] = _ignore) -> Run:
    """Go on from the newest checkpoint, as the run's next attempt; errors as in `launch`.

    `warn` is told of a training that has none, and begins at its first step.
    """
    detail = await session.ask(lambda store: store.detail(run_id))
    known = Mirror(run_id).read_record()
    async with (
        agent_on(session.config.host(_host_of(detail, "resumed"))) as agent,
        _registering(session, run_id, _state_of(detail), known) as register,
    ):
        started = await remote.resume(agent, run_id, before=register)
    trains = started.record.kind == "train" and (started.record.config or {}).get("kind", "train") == "train"
    if trains and started.status.checkpoint is None:
        warn(f"{run_id} had saved no checkpoint: it begins at its first step, with what was prepared")
    return await _record_start(session, started)


async def stop(session: Session, run_id: str, *, grace_s: float | None = None, kill: bool = False) -> Run:
    """End a run: it may save for the grace (default: the config's), with `kill` none.

    Returns once nothing of it lives and the end, with all the lines before it, is in the store.
    """
    detail = await session.ask(lambda store: store.detail(run_id))
    grace_s = session.config.stop.grace_s if grace_s is None else grace_s
    async with agent_on(session.config.host(_host_of(detail, "stopped"))) as agent:
        status = await remote.stop(agent, run_id, grace_s=grace_s, kill=kill)
    return await _wait_until_recorded(session, status)


@asynccontextmanager
async def _registering(
    session: Session, run_id: str, before: RunEvent, known: RunRecord | None = None
) -> AsyncIterator[Register]:
    """What registers a run as `starting` before it may start, so that no running one is ever unknown here.

    A refusal takes that back to how the run stood `before`; after a lost link the collector finds out how it stands.
    Which file is a script's log was found out here, and stays as `known`.
    """
    is_registered = False

    async def register(record: RunRecord, attempt: int) -> None:
        nonlocal is_registered
        if record.kind in script_log.KINDS and known and known.log:
            record = replace(record, log=known.log, shape=known.shape)
        event = RunEvent(time.time(), "state", RunState.STARTING, attempt=attempt)

        await session.ask(partial(note_run, record, event))
        is_registered = True

    try:
        yield register
    except LinkLostError:
        raise
    except HostError as e:
        if is_registered:
            event = replace(before, time=time.time(), text=str(e))
            await session.ask(lambda store: store.event(run_id, event))
        raise


async def _record_start(session: Session, started: LaunchedRun) -> Run:
    """A run that runs is noted at once. One that ended at once is noted by the collector, after its last words."""
    status = started.status
    if not status.state.is_over:
        await session.ask(lambda store: store.event(status.run_id, state_event(status)))
        await session.refresh()
        return (await session.ask(lambda store: store.detail(status.run_id))).run
    run = await _wait_until_recorded(session, status)
    if status.state is RunState.FAILED:
        why = status.note or "it said nothing"
        raise DflashError(f"{run.run_id} ended at once ({status.reason}, exit code {status.code}): {why}")
    return run


async def _wait_until_recorded(session: Session, status: RunStatus) -> Run:
    """Until the store knows of this end: it is noted when the log is complete. TimedOutError when that takes long."""
    deadline = time.monotonic() + RECORD_PATIENCE_S
    while True:
        run = (await session.ask(lambda store: store.detail(status.run_id))).run
        if (run.attempt or 0) > (status.attempt or 0) or (run.state, run.attempt) == (status.state, status.attempt):
            return run
        if RunState(run.state).is_over or run.state == RunState.ABSENT:
            # The store took it for ended, so nobody collects it: there is more to fetch.
            await session.ask(partial(_ask_for_more, status))
        await session.refresh()
        if time.monotonic() > deadline:
            raise TimedOutError(
                f"{run.run_id} is {status.state}, but its last lines are not in the store yet:"
                " an open session or `dflash-tui watch` fetches them"
            )
        await asyncio.sleep(0.2)


def _ask_for_more(status: RunStatus, store: Store) -> None:
    store.event(status.run_id, RunEvent(time.time(), "state", RunState.STARTING, attempt=status.attempt))


def _state_of(detail: RunDetail) -> RunEvent:
    run = detail.run
    return RunEvent(time.time(), "state", run.state, run.reason, run.code, run.signal, run.attempt, detail.pid)


def _host_of(detail: RunDetail, done: str) -> str:
    if detail.record.host is None:
        raise UsageError(f"{detail.run.run_id} was ingested from a file: no host runs it, so it cannot be {done}")
    return detail.record.host

"""What a person does to runs: launch, stop, resume. The one place where remote and store are put together for it.

The commands and the screens both come here. Asks nobody and prints nothing: who calls has confirmed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from dflash_tui import paths, recipes, script_log
from dflash_tui.collect import note_run, state_event
from dflash_tui.config import Config
from dflash_tui.errors import DflashError, HostError, LinkLostError, TimedOutError, UsageError
from dflash_tui.hosts.person import leaving_alone
from dflash_tui.masking import masked
from dflash_tui.remote import launch as remote
from dflash_tui.remote import plan, script_run
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.launch import LaunchedRun
from dflash_tui.remote.machine import begin_look, taken_gpus
from dflash_tui.remote.plan import LaunchPlan
from dflash_tui.remote.scripts import read_script
from dflash_tui.remote.status import RunStatus
from dflash_tui.run_env import run_env
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


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """`recipe` is a bundled name or a .toml file's path, `settings` are key=value words laid over it.

    `gpus` are the numbers of those it may see ("0,1"), `env_file` holds more of its environment.
    """

    recipe: str
    host: str
    name: str | None = None
    settings: tuple[str, ...] = ()
    gpus: str | None = None
    env_file: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """A script to be run as a run, with its arguments; `log` is a path on the host, None to find out. Else as above."""

    file: Path
    host: str
    args: tuple[str, ...] = ()
    name: str | None = None
    log: str | None = None
    gpus: str | None = None
    env_file: str | None = None


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """A run like another one: `settings` over its config, or other `args` for its script (None: the same)."""

    run_id: str
    settings: tuple[str, ...] = ()
    args: tuple[str, ...] | None = None
    host: str | None = None
    name: str | None = None
    gpus: str | None = None
    env_file: str | None = None


def last_launch() -> LaunchRequest | None:
    """What was launched last from this machine, for `L`."""
    try:
        return msgspec.json.decode(_last_launch_file().read_bytes(), type=LaunchRequest)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _last_launch_file() -> Path:
    return paths.data_dir() / "last_launch.json"


async def launch(session: Session, request: LaunchRequest, warn: Callable[[str], None] = _ignore) -> RunRecord:
    """Check the recipe, push code and config, start the run; returns once it is running and registered.

    `warn` is told of GPUs that somebody uses already.
    Errors: UsageError for the recipe, what it names and the host's name, HostError for what the machine lacks, each
    before anything is started; DflashError when the trainer ended at once (the run is registered then, with its state).
    """
    recipe = recipes.load(request.recipe, request.settings)
    session.config.host(request.host)
    env = _env_of(request)
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
    await asyncio.to_thread(_remember, request)
    await _record_start(session, started)
    return started.record


async def launch_script(session: Session, request: ScriptRequest, warn: Callable[[str], None] = _ignore) -> RunRecord:
    """Push a script and run it as a run; else as `launch`."""
    script, env = read_script(request.file), _env_of(request)
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
    detail = await session.ask(lambda store: store.detail(request.run_id))
    there = _host_of(detail, "cloned")
    record, host = detail.record, request.host or there
    _check_clone(record, request)
    name, env = request.name or record.name, _env_of(request)
    child = RunRecord(new_run_id(name), name, record.kind, host=host, created=time.time(), parent=record.run_id)
    refused = RunEvent(time.time(), "state", RunState.ABSENT)
    async with AsyncExitStack() as stack:
        agent = await stack.enter_async_context(agent_on(session.config.host(host)))
        source = agent
        if host != there:
            source = await stack.enter_async_context(agent_on(session.config.host(there)))
        else:
            env = {**await remote.given_env(agent, record.run_id), **env}
        register = await stack.enter_async_context(_registering(session, child.run_id, refused))
        await begin_look(agent)
        if record.kind == "train":
            recipe = recipes.change(record.config or {}, record.name, request.settings)
            child = replace(child, config=recipe.config)
            started = await remote.launch(agent, child, recipe.config, recipe=None, env=env, before=register)
        else:
            before = await script_run.recall(source, record.run_id)
            args = before.args if request.args is None else request.args
            child = replace(child, config={"script": before.script.name, "args": masked(args)})
            spec = await script_run.plan_script(agent, before.script, args, log=before.log, env=env)
            started = await script_run.launch_script(agent, child, before.script, spec, before=register)
        await _warn_of_gpus(agent, env, warn)
    await _record_start(session, started)
    return started.record


def _check_clone(record: RunRecord, request: CloneRequest) -> None:
    if record.kind not in ("train", "script"):
        raise UsageError(f"{record.run_id} was not started from here, so nobody here knows how to start one like it")
    if record.kind == "script" and request.settings:
        raise UsageError(f"{record.run_id} is a script, which has no settings: give it other words, behind `--`")
    if record.kind == "train" and request.args is not None:
        raise UsageError(f"{record.run_id} is a training, which takes no words: give it other settings, by --set")


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


async def plan_training(config: Config, host: str, training: dict[str, Any]) -> LaunchPlan:
    """What `launch` would do with a training's config on a host, and nothing of it; nobody is asked anything.

    Errors as in `launch`.
    """
    with leaving_alone():
        async with agent_on(config.host(host)) as agent:
            return await plan.plan_training(agent, training)


async def plan_launch(config: Config, request: LaunchRequest, training: dict[str, Any]) -> LaunchPlan:
    """The same of a request, whose recipe makes the config `training`. Errors as in `launch`."""
    env = _env_of(request)
    return replace(await plan_training(config, request.host, training), env=tuple(sorted(env)))


async def plan_script(config: Config, request: ScriptRequest) -> dict[str, Any]:
    """What `launch_script` would do, without a value of the environment. Nothing is started."""
    script, env = read_script(request.file), _env_of(request)
    async with agent_on(config.host(request.host)) as agent:
        spec = await script_run.plan_script(agent, script, request.args, log=request.log, env=env)
    code = spec["code"]
    return {
        "host": request.host,
        "argv": masked(spec["argv"]),
        "env": sorted(spec["env"]),
        "log": request.log,
        "python": spec["python"],
        "push": [
            {"file": str(request.file), "path": code["path"], "bytes": len(script.content), "there": code["there"]}
        ],
    }


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


def _env_of(request: LaunchRequest | ScriptRequest | CloneRequest) -> dict[str, str]:
    return run_env(Path(request.env_file).expanduser() if request.env_file else None, request.gpus)


def _remember(request: LaunchRequest) -> None:
    # A convenience for `L`: a full disk here must not make a launch that succeeded look like one that failed.
    with suppress(OSError):
        _last_launch_file().write_bytes(msgspec.json.encode(request))

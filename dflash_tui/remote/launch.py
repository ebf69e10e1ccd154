"""Start, stop, resume a run and ask for its state. Takes an agent and plain values, gives frozen ones back."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from dflash_tui.config import LOCAL, HostSpec
from dflash_tui.errors import HostError, TimedOutError, UsageError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.deploy import deploy
from dflash_tui.remote.files import read_json
from dflash_tui.remote.inputs import check_inputs
from dflash_tui.remote.status import RunStatus, read_status
from dflash_tui.runs import RunRecord, RunState, is_run_id
from dflash_tui.text import visible

PACKAGES = ("torch", "transformers", "safetensors")
MIN_TRAINER_PYTHON = (3, 10)
# Room for the first checkpoints of a small drafter; a disk with less is full for every purpose of a training.
MIN_FREE_BYTES = 64 << 20
# A trainer that cannot start at all says so within this time, and `launch` can say it too.
SETTLE_S = 0.5
# What an end may take beyond its grace: leftovers get 5 s, and a busy machine some more.
END_PATIENCE_S = 30.0
# JSON has no infinity.
_MAX_GRACE_S = 1e9

# What a trainer needs to be found and to leave its code as it is.
_OURS = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")

# Awaited with the complete record and the attempt's number, right before the host is asked to start it.
Before = Callable[[RunRecord, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """`record` is complete, with path and log; `already` says that this attempt had been started before."""

    record: RunRecord
    status: RunStatus
    already: bool


@dataclass(frozen=True, slots=True)
class Interpreter:
    executable: str
    version: str
    packages: dict[str, str]


async def interpreter(agent: AgentClient) -> Interpreter:
    """The host's interpreter, whatever it lacks; HostError if there is none."""
    probe = await agent.do("probe", python=agent.python, packages=PACKAGES, env=agent.spec.env)
    # A path of the person's choice is kept: it may be a script that sets things up.
    executable = agent.python if agent.python.startswith("/") else probe["executable"]
    return Interpreter(executable, probe["python"], {k: v for k, v in probe["packages"].items() if v})


async def preflight(agent: AgentClient) -> Interpreter:
    """The interpreter that would train; HostError says what it lacks and how to give it that."""
    if ":" in agent.workdir:
        raise HostError(f"{agent.workdir} on {agent.host.name}: Python cannot load code from a path with a colon in it")
    found = await interpreter(agent)
    where = f"{agent.python} on {agent.host.name}"
    if tuple(int(part) for part in found.version.split(".")[:2]) < MIN_TRAINER_PYTHON:
        raise HostError(
            f"{where} is Python {found.version}: a trainer needs 3.10 or newer; install one, {another(agent.spec)}"
        )
    missing = [name for name in PACKAGES if name not in found.packages]
    if missing:
        raise HostError(
            f"no {' and no '.join(missing)} in {where}: {remedy(agent.spec, agent.python, agent.workdir, missing)}"
        )
    return found


def remedy(spec: HostSpec, python: str, workdir: str, missing: Sequence[str]) -> str:
    """How an interpreter gets the packages it lacks. A system's own refuses them: a `venv` in the workdir is found."""
    packages = " ".join(missing)
    if spec.kind == LOCAL and python == sys.executable and find_spec("pip") is None:
        # pipx and uv make environments that have none.
        ways = "`pipx install --force '.[trainer]'` or `uv tool install --force '.[trainer]'`"
        return f"install dflash-tui anew with what training takes, {ways} in its sources, {another(spec)}"
    if spec.python or python.startswith(f"{workdir}/venv/"):
        return f"{python} -m pip install {packages} there, {another(spec)}"
    venv = f"{workdir}/venv"
    return f"python3 -m venv {venv} && {venv}/bin/pip install {packages} there, {another(spec)}"


def another(spec: HostSpec) -> str:
    return f"or set hosts.{spec.name}.python to another interpreter"


async def launch(
    agent: AgentClient,
    record: RunRecord,
    config: Json,
    *,
    recipe: str | None = None,
    source: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Before | None = None,
) -> LaunchedRun:
    """Start a run that nothing here can end by accident; returns once it runs, or has failed at once (see its status).

    HostError says why nothing was started, UsageError what the config names that is not there; then nothing was left
    behind. After a lost link the same call can be
    repeated with the same run id: it finds the first one's run. `source` is the `trainer` package to run, `env` stands
    beside the host's own. `before` can note the run down before it may exist; if it raises, nothing is started.
    """
    if not is_run_id(record.run_id):
        raise HostError(f"{record.run_id!r} is no run id")
    python = await preflight(agent)
    await check_inputs(agent, config)
    code = await deploy(agent, source)
    path = f"{agent.workdir}/dflash-runs/{record.run_id}"
    record = replace(
        record,
        host=agent.spec.name,
        path=path,
        log=f"{path}/train_log.jsonl",
        created=record.created or time.time(),
        code_hash=code.sha256,
        commit=code.commit,
        is_dirty=code.is_dirty,
        config=config,
    )
    spec: Json = {
        "run_id": record.run_id,
        "recipe": recipe,
        "host": record.host,
        "parent": record.parent,
        "code": asdict(code),
        "python": asdict(python),
        "env": {**agent.spec.env, **(env or {}), **dict(zip(_OURS, (code.path, "1"), strict=True))},
    }
    return await start_attempt(agent, record, 1, spec, {**config, "run_dir": path, "run_id": record.run_id}, before)


async def resume(agent: AgentClient, run_id: str, *, before: Before | None = None) -> LaunchedRun:
    """Go on as a new attempt, with the code and config of the last one: a training from its newest checkpoint, or from
    its first step with what was prepared for it; a script from its beginning (it may find DFLASH_ATTEMPT above 1, and
    what it left in its folder)."""
    found = await status(agent, run_id)
    _refuse_to_resume(found, agent.host.name)
    folder = f"{agent.workdir}/dflash-runs/{run_id}"
    [run] = await read_json(agent, f"{folder}/run.json")
    where = f"{folder}/run.json on {agent.host.name}"
    record = read_record(run, where)
    if record.run_id != run_id:
        raise HostError(f"{where} is damaged (it is the record of run {record.run_id!r}): the run cannot be resumed")
    # Where it lies is known better here: another laptop may call the host by another name.
    record = replace(record, host=agent.spec.name, path=folder)
    if record.kind == "adopted":
        raise HostError(f"run {run_id} was not started from here, so nobody here knows how to start it again")
    attempt = f"{folder}/attempts/{found.attempt}"
    spec, config = await read_json(agent, f"{attempt}/spec.json", f"{attempt}/config.json")
    if record.kind == "train":
        record = replace(record, log=f"{folder}/train_log.jsonl")
        spec["python"] = asdict(await preflight(agent))
    return await start_attempt(agent, record, (found.attempt or 0) + 1, spec, config, before)


async def stop(agent: AgentClient, run_id: str, *, grace_s: float, kill: bool = False) -> RunStatus:
    """End a run: it may save for `grace_s` seconds, with `kill` none. Returns its state once nothing of it lives.

    A run that was over stays as it was. TimedOutError if it outlives even being killed.
    """
    if not grace_s >= 0:
        raise UsageError(f"a grace of {grace_s:g} s: give a number of seconds from 0")
    grace_s = 0.0 if kill else min(grace_s, _MAX_GRACE_S)
    deadline = time.monotonic() + grace_s + END_PATIENCE_S
    found = read_status(await agent.do("stop", run_id=run_id, grace_s=grace_s))
    pause_s = 0.05
    while not found.state.is_over:
        if time.monotonic() > deadline:
            raise TimedOutError(
                f"run {run_id} on {agent.host.name} still lives after its stop: look at pid {found.pid}"
            )
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.5)
        # A supervisor that was killed meanwhile leaves an orphan: asked again, another one takes over.
        op = {"op": "stop", "grace_s": grace_s} if found.state is RunState.ORPHANED else {"op": "status"}
        found = read_status(await agent.do(**op, run_id=run_id))
    return found


async def status(agent: AgentClient, run_id: str) -> RunStatus:
    return read_status(await agent.do("status", run_id=run_id))


async def start_attempt(
    agent: AgentClient, record: RunRecord, attempt: int, spec: Json, config: Json, before: Before | None
) -> LaunchedRun:
    """Ask for an attempt, and watch its first moment."""
    spec = {**spec, "attempt": attempt}
    if record.kind == "train":
        file = f"{record.path}/attempts/{attempt}/config.json"
        spec["argv"] = [spec["python"]["executable"], "-m", "trainer", file]
    if before:
        await before(record, attempt)
    answer = await agent.do(
        "launch",
        run_id=record.run_id,
        attempt=attempt,
        record=asdict(record),
        spec=spec,
        config=config,
        code=record.code_hash if record.kind == "train" else None,
        min_free_bytes=MIN_FREE_BYTES,
    )
    found, end = read_status(answer), time.monotonic() + SETTLE_S
    while not (answer["already"] or found.state.is_over or time.monotonic() > end):
        await asyncio.sleep(0.05)
        found = await status(agent, record.run_id)
    return LaunchedRun(record, found, answer["already"])


def _refuse_to_resume(found: RunStatus, host: str) -> None:
    run = f"run {found.run_id} on {host}"
    if found.state is RunState.ABSENT:
        raise HostError(f"there is no {run}")
    if not found.state.is_over:
        raise HostError(f"{run} is {found.state} (pid {found.pid}): stop it before you resume it")
    if found.state is RunState.FINISHED:
        raise HostError(f"{run} has finished all its steps: there is nothing to resume")


def read_record(found: Any, where: str) -> RunRecord:
    """A record as a host has it; HostError, beginning with `where`, if it is none."""
    try:
        record = msgspec.convert(found, RunRecord)
        # What cannot be written again must not get as far as the store: a lone surrogate in a name.
        msgspec.json.encode(record)
    except (msgspec.MsgspecError, ValueError, OverflowError) as e:
        raise HostError(f"{where} is damaged ({visible(str(e))}): the run cannot be resumed, nor brought here") from e
    if not is_run_id(record.run_id):
        raise HostError(
            f"{where} is damaged ({record.run_id!r} is no run id): the run cannot be resumed, nor brought here"
        )
    return record


async def given_env(agent: AgentClient, run_id: str) -> dict[str, str]:
    """The environment that a run was given beside its host's own, when it was launched."""
    [spec] = await read_json(agent, f"{agent.workdir}/dflash-runs/{run_id}/attempts/1/spec.json")
    env = spec.get("env")
    if not isinstance(env, dict):
        raise HostError(f"spec.json of run {run_id} on {agent.host.name} is damaged: launch it anew")
    return {str(key): str(value) for key, value in env.items() if key not in _OURS and agent.spec.env.get(key) != value}

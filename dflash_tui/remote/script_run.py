"""A trainer of a person's own, a script, run as a run: supervised, followed, stopped and resumed like any other."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.files import read_file, read_json
from dflash_tui.remote.launch import Before, LaunchedRun, interpreter, start_attempt
from dflash_tui.remote.scripts import Script, push
from dflash_tui.runs import RunRecord


async def plan_script(
    agent: AgentClient, script: Script, args: Sequence[str], *, log: str | None = None, env: Mapping[str, str]
) -> Json:
    """The spec of a run of `script`, and what of it is pushed (`there`: it is not); nothing is started or pushed.

    `log` is a path on the host, from the run's folder where it is relative; None: train_log.jsonl in the run's folder
    once there is one, else what is printed. HostError if the host cannot run it.
    """
    try:
        python: Json = asdict(await interpreter(agent))
    except HostError:
        # A shell script may need none.
        python = {"executable": agent.python, "version": None, "packages": {}}
    found = await agent.do("find-script", sha256=script.sha256, name=script.name)
    return {
        "script": script.name,
        "code": {"path": found["path"], "sha256": script.sha256, "there": found["there"]},
        "host": agent.spec.name,
        "python": python,
        "argv": script.argv(str(found["path"]), args, python["executable"]),
        "args": list(args),
        "log": log,
        "env": {**agent.spec.env, **env},
    }


async def launch_script(
    agent: AgentClient, record: RunRecord, script: Script, spec: Json, *, before: Before | None = None
) -> LaunchedRun:
    """Start a run of `script` as `plan_script` has planned it; else as `launch`."""
    await push(agent, script)
    path = f"{agent.workdir}/dflash-runs/{record.run_id}"
    log = spec["log"]
    record = replace(
        record,
        host=agent.spec.name,
        path=path,
        log=log and (log if log.startswith("/") else f"{path}/{log}"),
        created=record.created or time.time(),
        code_hash=script.sha256,
    )
    spec = {**spec, "run_id": record.run_id, "parent": record.parent}
    return await start_attempt(agent, record, 1, spec, {}, before)


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a run of a script was started with, as its host has it."""

    script: Script
    args: tuple[str, ...]
    log: str | None


async def recall(agent: AgentClient, run_id: str) -> Recalled:
    """Of the run's first attempt. HostError if its host does not have it any more."""
    where = f"what run {run_id} on {agent.host.name} was started with"
    [spec] = await read_json(agent, f"{agent.workdir}/dflash-runs/{run_id}/attempts/1/spec.json")
    try:
        name, path, sha256 = str(spec["script"]), str(spec["code"]["path"]), str(spec["code"]["sha256"])
        args, log = tuple(str(word) for word in spec["args"]), spec["log"]
    except (KeyError, TypeError, AttributeError) as e:
        raise HostError(f"{where} is damaged ({e!r}): launch it anew") from e
    script = Script(name, await read_file(agent, path))
    if script.sha256 != sha256:
        raise HostError(f"{where} was changed there: launch it anew")
    return Recalled(script, args, None if log is None else str(log))

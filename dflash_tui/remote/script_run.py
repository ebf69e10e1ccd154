"""A trainer of a person's own, a script, run as a run: supervised, followed, stopped and resumed like any other."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
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

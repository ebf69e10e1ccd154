"""What a launch, or a clone, would do on its host: checked there as the act itself would, and nothing of it done.

What a clone is made of is found here too, for both.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from dflash_tui import recipes
from dflash_tui.config import Config
from dflash_tui.errors import UsageError
from dflash_tui.hosts.person import leaving_alone
from dflash_tui.masking import masked
from dflash_tui.remote import launch as remote
from dflash_tui.remote import plan, script_run
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.plan import LaunchPlan
from dflash_tui.remote.scripts import Script, read_script
from dflash_tui.requests import CloneRequest, LaunchRequest, ScriptRequest, env_of
from dflash_tui.runs import RunRecord


async def plan_training(config: Config, host: str, training: dict[str, Any]) -> LaunchPlan:
    """What `launch` would do with a training's config on a host, and nothing of it; nobody is asked anything.

    Errors as in `launch`.
    """
    with leaving_alone():
        async with agent_on(config.host(host)) as agent:
            return await plan.plan_training(agent, training)


async def plan_launch(config: Config, request: LaunchRequest, training: dict[str, Any]) -> LaunchPlan:
    """The same of a request, whose recipe makes the config `training`. Errors as in `launch`."""
    env = env_of(request)
    return replace(await plan_training(config, request.host, training), env=tuple(sorted(env)))


async def plan_script(config: Config, request: ScriptRequest) -> dict[str, Any]:
    """What `launch_script` would do, without a value of the environment. Nothing is started."""
    script, env = read_script(request.file), env_of(request)
    async with agent_on(config.host(request.host)) as agent:
        spec = await script_run.plan_script(agent, script, request.args, log=request.log, env=env)
    return _told(spec, script, str(request.file))


@dataclass(frozen=True, slots=True)
class CloneBasis:
    """What a clone is made of, its host at hand. Of a script: `script` and the `spec` of its run, else both None."""

    agent: AgentClient
    env: dict[str, str]
    config: dict[str, Any]
    script: Script | None = None
    spec: dict[str, Any] | None = None


@asynccontextmanager
async def clone_basis(config: Config, record: RunRecord, request: CloneRequest) -> AsyncIterator[CloneBasis]:
    """On the run's own host it has its environment too.

    UsageError for a run that was not started from here, HostError if its host does not have it any more.
    """
    there = _host_of(record)
    _check_clone(record, request)
    env = env_of(request)
    async with AsyncExitStack() as stack:
        agent = source = await stack.enter_async_context(agent_on(config.host(request.host or there)))
        if request.host not in (None, there):
            source = await stack.enter_async_context(agent_on(config.host(there)))
        else:
            env = {**await remote.given_env(agent, record.run_id), **env}
        if record.kind == "train":
            training = recipes.change(record.config or {}, record.name, request.settings).config
            yield CloneBasis(agent, env, training)
            return
        before = await script_run.recall(source, record.run_id)
        args = before.args if request.args is None else request.args
        spec = await script_run.plan_script(agent, before.script, args, log=before.log, env=env)
        yield CloneBasis(agent, env, {"script": before.script.name, "args": masked(args)}, before.script, spec)


async def plan_clone(
    config: Config, record: RunRecord, request: CloneRequest
) -> tuple[dict[str, Any], LaunchPlan | None]:
    """What `clone` would do: a training's config with its plan, or what `plan_script` says. Errors as in `clone`."""
    async with clone_basis(config, record, request) as basis:
        if basis.script is None or basis.spec is None:
            found = await plan.plan_training(basis.agent, basis.config)
            return basis.config, replace(found, env=tuple(sorted(basis.env)))
        return _told(basis.spec, basis.script, f"{record.run_id}'s {basis.script.name}"), None


def _told(spec: dict[str, Any], script: Script, file: str) -> dict[str, Any]:
    code = spec["code"]
    return {
        "host": spec["host"],
        "argv": masked(spec["argv"]),
        "env": sorted(spec["env"]),
        "log": spec["log"],
        "python": spec["python"],
        "push": [{"file": file, "path": code["path"], "bytes": len(script.content), "there": code["there"]}],
    }


def _host_of(record: RunRecord) -> str:
    if record.host is None:
        raise UsageError(f"{record.run_id} was ingested from a file: no host runs it, so it cannot be cloned")
    return record.host


def _check_clone(record: RunRecord, request: CloneRequest) -> None:
    if record.kind not in ("train", "script"):
        raise UsageError(f"{record.run_id} was not started from here, so nobody here knows how to start one like it")
    if record.kind == "script" and request.settings:
        raise UsageError(f"{record.run_id} is a script, which has no settings: give it other words, behind `--`")
    if record.kind == "train" and request.args is not None:
        raise UsageError(f"{record.run_id} is a training, which takes no words: give it other settings, by --set")

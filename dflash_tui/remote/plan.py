"""What a launch would do on a machine, without doing it: who would train, what would be pushed, the words that run."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from dflash_tui import paths
from dflash_tui.remote.bundle import pack
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.inputs import check_inputs
from dflash_tui.remote.launch import Interpreter, preflight
from dflash_tui.remote.machine import Overview, overview

RUN_ID = "RUN"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """`argv` has RUN_ID where the run's id will stand; `push_bytes` is 0 when the code lies there already.

    `env` names what a person adds to its environment, values are nobody's business.
    """

    host: str
    python: Interpreter
    argv: list[str]
    push_bytes: int
    view: Overview
    env: tuple[str, ...] = ()


async def plan_training(agent: AgentClient, config: Json, source: Path | None = None) -> LaunchPlan:
    """HostError says what the machine lacks, UsageError what the config names that is not there, as a launch would;
    nothing is started or pushed."""
    python = await preflight(agent)
    await check_inputs(agent, config)
    bundle = await asyncio.to_thread(pack, source or paths.bundled("trainer"), "trainer")
    found = await agent.do("find-code", sha256=bundle.sha256, timeout_s=120)
    file = f"{agent.workdir}/dflash-runs/{RUN_ID}/attempts/1/config.json"
    argv = [python.executable, "-m", "trainer", file]
    push_bytes = 0 if found["there"] else len(bundle.archive)
    return LaunchPlan(agent.spec.name, python, argv, push_bytes, await overview(agent))

"""What a person does to machines. The one place where config and remote are put together for it, without a store.

The commands and the screens both come here. Prints nothing; what only a person can decide, a host asks itself.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dflash_tui.config import HostSpec
from dflash_tui.errors import (
    AuthFailedError,
    DflashError,
    HostError,
    HostKeyChangedError,
    HostKeyUnknownError,
    UnreachableError,
)
from dflash_tui.hosts import open_host
from dflash_tui.hosts.containers import Container
from dflash_tui.hosts.person import leaving_alone
from dflash_tui.hosts.proxmox import ProxmoxHost
from dflash_tui.remote import check as remote_check
from dflash_tui.remote import execute as remote
from dflash_tui.remote import scripts
from dflash_tui.remote.check import Finding
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.execute import Ended, Order, Streams
from dflash_tui.remote.machine import Overview, overview
from dflash_tui.remote.scripts import Script

State = Literal["reachable", "unreachable", "auth-failed", "key-unknown", "key-changed"]

# For a list of machines: one that takes longer is told as silent.
LOOK_S = 20.0


@dataclass(frozen=True, slots=True)
class Look:
    """How a host stands now. `view` is None where it could not be had; `note` says why, or what is odd."""

    spec: HostSpec
    state: State
    view: Overview | None
    note: str | None


async def look(spec: HostSpec) -> Look:
    """Never raises what a machine can be at fault for."""
    try:
        async with asyncio.timeout(LOOK_S), agent_on(spec) as agent:
            return Look(spec, "reachable", await overview(agent), None)
    except TimeoutError:
        return Look(spec, "unreachable", None, f"{spec.name} gave no answer within {LOOK_S:g} s")
    except UnreachableError as e:
        return Look(spec, state_of(e), None, str(e))
    except HostError as e:
        return Look(spec, "reachable", None, str(e))
    except DflashError as e:
        # What is written of it here leads nowhere: an address that is none, a ~/.ssh/config that does not read.
        return Look(spec, "unreachable", None, str(e))


async def look_alone(spec: HostSpec) -> Look:
    """The same, and nobody is asked anything."""
    with leaving_alone():
        return await look(spec)


async def look_at_all(specs: Iterable[HostSpec]) -> list[Look]:
    """All at once: the slowest one says how long it takes."""
    return list(await asyncio.gather(*(look(spec) for spec in specs)))


def state_of(error: UnreachableError) -> State:
    """What a failed connect says of a host."""
    if isinstance(error, HostKeyUnknownError):
        return "key-unknown"
    if isinstance(error, HostKeyChangedError):
        return "key-changed"
    return "auth-failed" if isinstance(error, AuthFailedError) else "unreachable"


async def check(spec: HostSpec, known_runs: frozenset[str] = frozenset()) -> list[Finding]:
    """All that stands for or against training there. UnreachableError when nothing can be said of it."""
    host = open_host(spec)
    try:
        findings = await _containers(host) if isinstance(host, ProxmoxHost) else []
        try:
            async with AgentClient.open(host, spec) as agent:
                return findings + await remote_check.check(agent, known_runs)
        except UnreachableError as e:
            if not findings:
                raise
            return [*findings, Finding("reach", "critical", str(e))]
        except HostError as e:
            return [*findings, Finding("agent", "critical", str(e))]
    finally:
        await host.close()


async def containers(spec: HostSpec) -> list[Container]:
    """Those of the node that the container `spec` is on, and of its cluster. HostError if it cannot be asked."""
    host = ProxmoxHost(spec)
    try:
        with leaving_alone():
            return await host.containers()
    finally:
        await host.close()


async def _containers(host: ProxmoxHost) -> list[Finding]:
    """Those of the node, and how ours stands."""
    listed = await host.containers()
    words = [
        f"{one.vmid} {one.name} {one.status}"
        + (f", locked: {one.lock}" if one.lock else "")
        + (f", on node {one.node}" if one.node else "")
        for one in listed[:20]
    ]
    findings = [Finding("node", "ok", f"containers: {'; '.join(words) or 'none'}")]
    try:
        ours = await host.container()
    except UnreachableError as e:
        return [*findings, Finding("container", "critical", str(e))]
    how = f"container {ours.vmid} ({ours.name}) is {ours.status}"
    if ours.lock:
        how += f", and locked ({ours.lock}): it cannot be started or stopped before that ends"
    if ours.status == "frozen":
        how += ": what runs there stands still and goes on after it thaws, as after a backup"
    return [*findings, Finding("container", "ok" if ours.status == "running" and not ours.lock else "warning", how)]


async def execute(
    spec: HostSpec, script: Script, args: Sequence[str], streams: Streams, *, timeout_s: float | None = None
) -> Ended:
    """Push a script and run it in the host's workdir, to its end. What ends this ends the script as well."""
    host = open_host(spec)
    try:
        async with AgentClient.open(host, spec) as agent:
            path = await scripts.push(agent, script)
            order = Order(script.argv(path, args, agent.python), agent.workdir, spec.env, agent.python)
            command = agent.command
        return await remote.execute(host, command, order, streams, timeout_s=timeout_s)
    finally:
        await host.close()

"""What stands for or against training on a machine: a sentence each, with what to do where something is wrong."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.launch import MIN_FREE_BYTES, MIN_TRAINER_PYTHON, PACKAGES, another, remedy
from dflash_tui.remote.machine import Overview, read_overview
from dflash_tui.text import visible

Severity = Literal["ok", "info", "warning", "critical"]

_CHECK_S = 120.0
# Less than this is one large checkpoint away from a full disk.
_ROOMY_BYTES = 10 << 30
_CLOCK_S = 2.0
# Where a lock that works today may not keep out another machine tomorrow.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "virtiofs", "vboxsf", "fuse.gcsfuse"}


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    severity: Severity
    sentence: str

    @property
    def is_well(self) -> bool:
        return self.severity in ("ok", "info")


async def check(agent: AgentClient, known_runs: frozenset[str] = frozenset()) -> list[Finding]:
    """All findings on the agent's machine. `known_runs` are those that the store knows already."""
    begun = time.time()
    hello = await agent.do("hello")
    ended = time.time()
    words: Json = {"python": agent.python, "packages": PACKAGES, "env": agent.spec.env}
    facts = await agent.do("check", timeout_s=_CHECK_S, **words)
    now = hello.get("now")
    view = read_overview(agent.host.name, facts, now if isinstance(now, float) else None, begun, ended)
    try:
        return [*found_in(agent.spec, agent.workdir, facts, view, str(hello["python"]), known_runs)]
    except (KeyError, TypeError, ValueError) as e:
        raise HostError(f"{agent.host.name} tells of itself what cannot be read: {e!r}") from e


def found_in(
    spec: HostSpec, workdir: str, facts: Json, view: Overview, python: str, known_runs: frozenset[str]
) -> Iterator[Finding]:
    """What the facts of an agent, whose own Python is `python`, mean; KeyError or the like if they are none."""
    yield Finding("reach", "ok", f"answers in {view.latency_ms:.0f} ms, as user {visible(str(facts['user']))}")
    yield Finding("agent", "ok", f"Python {visible(python)} runs it, in {workdir}/dflash-agent")
    yield from _python(spec, workdir, facts)
    yield from _gpus(view)
    yield _disk(workdir, facts["disk"])
    yield _lock(workdir, facts)
    yield _memory(view, facts)
    yield _clock(view)
    yield from _logout(facts)
    yield Finding("shell", "ok", f"{visible(str(facts['shell'] or 'none'))}; its start-up files are never needed")
    if facts["has_pct"]:
        yield Finding("pct", "info", "this is a Proxmox node: its containers are hosts of kind proxmox, with a vmid")
    unknown = sorted(set(view.runs) - known_runs)
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        sentence = (
            f"not known here yet: {', '.join(unknown[:3])}{more}; `dflash-tui hosts scan {spec.name}` brings them here"
        )
        yield Finding("runs", "info", sentence)
    else:
        yield Finding("runs", "ok", f"{len(view.living)} run now, of {len(view.runs)} in {workdir}/dflash-runs")


def _python(spec: HostSpec, workdir: str, facts: Json) -> Iterator[Finding]:
    found, torch = facts["interpreter"], facts["torch"]
    if found["why"]:
        yield Finding("python", "critical", f"{visible(found['why'])}: install one there, {another(spec)}")
        return
    executable = visible(str(found["executable"]))
    where = f"{executable} is Python {visible(str(found['python']))}"
    if tuple(int(part) for part in found["python"].split(".")[:2]) < MIN_TRAINER_PYTHON:
        yield Finding("python", "critical", f"{where}: the trainer needs 3.10 or newer; install one, {another(spec)}")
        return
    yield Finding("python", "ok", where)
    missing = [package for package in PACKAGES if not found["packages"].get(package)]
    if missing:
        how = remedy(spec, executable, workdir, missing)
        yield Finding("torch", "critical", f"no {' and no '.join(missing)} in that interpreter: {how}")
    elif torch["why"]:
        yield Finding("torch", "critical", f"torch cannot be imported ({visible(torch['why'])}): install it again")
    else:
        yield _torch(torch)


def _torch(torch: Json) -> Finding:
    version = f"torch {visible(str(torch['version']))}"
    if torch["error"]:
        return Finding("torch", "warning", f"{version} finds no GPU ({visible(str(torch['error']))[:200]}): look there")
    if not torch["cuda"]:
        return Finding("torch", "info", f"{version} is built without CUDA: it trains on the CPU")
    if not torch["devices"]:
        cure = "is there a driver, and does the container get the device?"
        return Finding("torch", "warning", f"{version} with CUDA {visible(str(torch['cuda']))} sees no GPU: {cure}")
    return Finding(
        "torch", "ok", f"{version} with CUDA {visible(str(torch['cuda']))} sees {int(torch['devices'])} GPUs"
    )


def _gpus(view: Overview) -> Iterator[Finding]:
    if view.gpus is None:
        yield Finding("gpu", "info", f"no GPU info: {view.no_gpus}")
        return
    for gpu in view.gpus:
        severity: Severity = "ok" if gpu.is_free else "info"
        cure = ""
        if gpu.is_free is False and not gpu.processes:
            severity, cure = "warning", ": a container does not show whose it is; ask its host's nvidia-smi"
        yield Finding("gpu", severity, f"GPU {gpu.index}, {gpu.name}: {gpu}{cure}")


def _disk(workdir: str, disk: Json) -> Finding:
    free = f"{int(disk['free_bytes']) / 2**30:.1f} GiB free in {workdir}"
    if disk["is_read_only"] or disk["why_not_written"]:
        why = "it is mounted read-only" if disk["is_read_only"] else visible(str(disk["why_not_written"]))
        return Finding("disk", "critical", f"{workdir} cannot be written ({why}): choose another workdir")
    if disk["free_files"] == 0:
        return Finding("disk", "critical", f"{free}, but no inode: remove some files")
    if disk["free_bytes"] < MIN_FREE_BYTES:
        return Finding(
            "disk", "critical", f"{free}, too little for any run: make room there, or choose another workdir"
        )
    if disk["free_bytes"] < _ROOMY_BYTES:
        return Finding("disk", "warning", f"{free}: a large drafter's checkpoints fill that; make room there")
    noexec = "; mounted noexec, which does not matter: nothing there is executed itself" if disk["is_noexec"] else ""
    return Finding("disk", "ok", free + noexec)


def _lock(workdir: str, facts: Json) -> Finding:
    lock, kind = facts["lock"], str(facts["disk"]["kind"])
    if not lock["works"]:
        why = visible(str(lock["why"]))
        return Finding("lock", "critical", f"{workdir} takes no lock ({why}): choose a workdir on a local disk")
    if kind in _NETWORK:
        cure = "a workdir on a local disk is safer, as a lock there is seen by this machine alone"
        return Finding("lock", "warning", f"{workdir} is on {visible(kind)}: {cure}")
    return Finding("lock", "ok", f"{workdir} is on {visible(kind)}, and locks work there")


def _memory(view: Overview, facts: Json) -> Finding:
    if view.memory_total is None or view.memory_available is None:
        return Finding("memory", "info", "how much there is cannot be known")
    free, total = view.memory_available / 2**30, view.memory_total / 2**30
    load = f"{facts['cpus']} CPUs with a load of {float(facts['load']):.1f}"
    severity: Severity = "warning" if free < min(2.0, total / 10) else "ok"
    cure = ": end something there" if severity == "warning" else ""
    return Finding("memory", severity, f"{free:.1f} GiB of {total:.1f} GiB available, {load}{cure}")


def _clock(view: Overview) -> Finding:
    # An offset within the round trip is none.
    if abs(view.clock_offset_s) <= max(_CLOCK_S, view.latency_ms / 1000):
        return Finding("clock", "ok", f"{view.clock_offset_s:+.1f} s from ours")
    way = "ahead of" if view.clock_offset_s > 0 else "behind"
    sentence = (
        f"{abs(view.clock_offset_s):,.0f} s {way} ours: ages are right all the same, times in logs are not; run NTP"
    )
    return Finding("clock", "warning", sentence)


def _logout(facts: Json) -> Iterator[Finding]:
    kills = facts["kill_user_processes"]
    if kills:
        sentence = "logind ends what a user runs when he logs out: `loginctl enable-linger` there, as that user"
        yield Finding("logout", "critical", sentence)
    elif kills is False:
        yield Finding("logout", "ok", "what runs there outlives a logout")

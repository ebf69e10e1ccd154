"""A machine as its agent sees it, as frozen values: its GPUs and whose they are, disk, memory, clock, runs.

Nothing from a host is believed to have the right shape. What the facts mean for a person stands in `check.py`.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.runs import GpuSample, is_run_id
from dflash_tui.text import visible

T = TypeVar("T")

# Below this a GPU holds no more than its driver's own.
IDLE_MIB = 500.0
_OVERVIEW_S = 40.0
_LOOK_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """`run` is the run that it belongs to, if it is one of ours; `memory_mib` None: not known."""

    pid: int
    name: str
    memory_mib: float | None
    run: str | None


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int | None
    name: str
    memory_used_mib: float | None
    memory_total_mib: float | None
    utilization_pct: float | None
    temperature_c: float | None
    power_w: float | None
    processes: tuple[GpuProcess, ...]

    @property
    def is_free(self) -> bool | None:
        """None when that cannot be known."""
        if self.processes:
            return False
        return None if self.memory_used_mib is None else self.memory_used_mib <= IDLE_MIB

    def __str__(self) -> str:
        """How full it is and whose that is: never "free" for what is only not visible."""
        if self.is_free is None:
            return "unknown"
        if self.is_free:
            return "free"
        used = f"{_gib(self.memory_used_mib)} of {_gib(self.memory_total_mib)} used"
        if not self.processes:
            return f"{used}, owner not visible"
        owners = [f"run {one.run}" if one.run else f"pid {one.pid} ({one.name})" for one in self.processes]
        return f"{used} by {', '.join(dict.fromkeys(owners))}"


@dataclass(frozen=True, slots=True)
class Overview:
    """`gpus` is None where nobody can tell; then `no_gpus` says why. Offsets are the host's clock minus ours."""

    latency_ms: float
    clock_offset_s: float
    disk_free: int
    memory_total: int | None
    memory_available: int | None
    gpus: tuple[Gpu, ...] | None
    no_gpus: str | None
    runs: tuple[str, ...]
    living: tuple[str, ...]


async def overview(agent: AgentClient) -> Overview:
    """HostError if the machine tells what cannot be read."""
    begun = time.time()
    hello = await agent.do("hello")
    ended = time.time()
    found = await agent.do("overview", timeout_s=_OVERVIEW_S)
    return read_overview(agent.host.name, found, _number(hello.get("now")), begun, ended)


@dataclass(frozen=True, slots=True)
class GpuReading:
    """`taken` is when, by the host's clock; None: there is nothing newer. Times of samples are by ours."""

    taken: float | None
    has_gpus: bool
    runs: dict[str, list[GpuSample]]


async def sample_gpus(agent: AgentClient, run_ids: Sequence[str], *, since: float, every_s: float) -> GpuReading:
    """Which GPUs these runs are on, as the newest look that was taken after `since` saw it.

    HostError if that cannot be read. Looks are taken beside the agent, at most one in `every_s`.
    """
    found = await agent.do("gpus", runs=list(run_ids), since=since, every_s=every_s)
    try:
        if found["time"] is None:
            return GpuReading(None, False, {})
        at = time.time() - float(found["age_s"])
        cards = {one["index"]: read_gpu(one) for one in found["gpus"] or []}
        runs = {
            run_id: [_sample(at, cards[index], _number(own)) for index, own in found["runs"].get(run_id, [])]
            for run_id in run_ids
        }
        return GpuReading(float(found["time"]), found["gpus"] is not None, runs)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as e:
        raise HostError(f"{agent.host.name} tells of its GPUs what cannot be read: {e!r}") from e


def _sample(at: float, gpu: Gpu, own_mib: float | None) -> GpuSample:
    if gpu.index is None or not 0 <= gpu.index < 1000:
        raise ValueError(f"a GPU with the number {gpu.index}")
    return GpuSample(
        at, gpu.index, gpu.name, gpu.utilization_pct, gpu.memory_used_mib, gpu.memory_total_mib, own_mib,
        gpu.temperature_c, gpu.power_w,
    )  # fmt: skip


async def begin_look(agent: AgentClient) -> None:
    """Have the GPUs looked at while other things are done; `taken_gpus` tells what was seen."""
    await agent.do("gpus", every_s=0, runs=[])


async def taken_gpus(agent: AgentClient, visible: str | None) -> list[str]:
    """A sentence for each GPU that somebody used when the look began. `visible` limits them, as CUDA_VISIBLE_DEVICES.

    A tool that takes its time is not waited for long: a warning is not worth a slow launch.
    """
    deadline = time.monotonic() + _LOOK_PATIENCE_S
    found = await agent.do("gpus", every_s=3600, runs=[])
    while found["time"] is None and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        found = await agent.do("gpus", every_s=3600, runs=[])
    numbers = None if visible is None else visible.split(",")
    try:
        gpus = [read_gpu(one) for one in found.get("gpus") or []]
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        raise HostError(f"{agent.host.name} tells of its GPUs what cannot be read: {e!r}") from e
    taken = [gpu for gpu in gpus if gpu.is_free is False and (numbers is None or str(gpu.index) in numbers)]
    return [f"GPU {gpu.index} of {agent.spec.name}: {gpu}: the run may find too little memory there" for gpu in taken]


def read_overview(host: str, found: Json, now: float | None, begun: float, ended: float) -> Overview:
    """`now` is what the host's clock showed between `begun` and `ended` of ours."""
    try:
        memory = found["memory"]
        return Overview(
            latency_ms=(ended - begun) * 1000,
            clock_offset_s=(now or 0.0) - (begun + ended) / 2,
            disk_free=int(found["disk_free_bytes"]),
            memory_total=_optional(int, memory["total_bytes"]),
            memory_available=_optional(int, memory["available_bytes"]),
            gpus=None if found["gpus"] is None else tuple(read_gpu(one) for one in found["gpus"]),
            no_gpus=_optional(_text, found["why"]),
            runs=tuple(run for run in map(str, found["runs"]) if is_run_id(run)),
            living=tuple(run for run in map(str, found["living"]) if is_run_id(run)),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        raise HostError(f"{host} tells of itself what cannot be read: {e!r}") from e


def read_gpu(found: Json) -> Gpu:
    """KeyError, TypeError or ValueError if it is none."""
    return Gpu(
        index=_optional(int, found["index"]),
        name=_text(found["name"]),
        memory_used_mib=_number(found["memory_used_mib"]),
        memory_total_mib=_number(found["memory_total_mib"]),
        utilization_pct=_number(found["utilization_pct"]),
        temperature_c=_number(found["temperature_c"]),
        power_w=_number(found["power_w"]),
        processes=tuple(_process(one) for one in found["processes"]),
    )


def _process(found: Json) -> GpuProcess:
    run = found["run"]
    return GpuProcess(
        int(found["pid"]), _text(found["name"]), _number(found["memory_mib"]), run if run and is_run_id(run) else None
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e15 else None


def _text(value: Any) -> str:
    return visible(str(value)[:300])


def _optional(kind: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else kind(value)


def _gib(mib: float | None) -> str:
    return "an unknown amount" if mib is None else f"{mib / 1024:.1f} GiB"

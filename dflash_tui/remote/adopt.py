"""Logs that are written by what we did not start: look at one, find its process, and make it a run like the others."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.launch import LaunchedRun, read_record, status
from dflash_tui.runs import RunRecord
from dflash_tui.text import visible

# Enough to see how its lines read.
_HEAD_BYTES = 1 << 18
_MAX_PID = 1 << 22


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    start: int
    argv: tuple[str, ...]
    age_s: float


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A log on a host: `path` is absolute, `head` its first bytes, `age_s` since it was written to.

    `how` the process was found: it has the log "open", or only names it ("argument") or works beside it ("cwd"), which
    is a guess. `others` might be meant as well; `num_hidden` processes of other users could not be looked into.
    """

    path: str
    size: int
    age_s: float
    head: bytes
    process: Process | None
    how: str | None
    others: tuple[Process, ...]
    num_hidden: int


async def look(agent: AgentClient, log: str) -> FoundLog:
    """HostError if there is no such log. `log` is absolute, or from the host's workdir or home (`~`)."""
    found = await agent.do("look", log=log)
    try:
        path = str(found["log"])
        [(meta, head)] = await agent.ask([{"op": "read", "path": path, "final": True}])
        agent.accepted(meta)
        return FoundLog(
            path=path,
            size=int(found["size"]),
            age_s=float(found["age_s"]),
            head=head[:_HEAD_BYTES],
            process=_process(found["process"]) if found["process"] else None,
            how=found["how"] if found["how"] in ("open", "argument", "cwd") else None,
            others=tuple(_process(other) for other in found["others"]),
            num_hidden=int(found["num_hidden"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        raise HostError(f"{agent.host.name} told of {visible(log)} what cannot be read: {e!r}") from e


async def adopt(agent: AgentClient, record: RunRecord, found: FoundLog) -> LaunchedRun:
    """Make a run of it, that can be followed from its first byte on, and stopped if its process is known.

    One that was followed before goes on as the run that it was, with another record than this. Nothing is started.
    HostError if it cannot be; the same record again changes nothing.
    """
    path = f"{agent.workdir}/dflash-runs/{record.run_id}"
    record = replace(record, host=agent.spec.name, path=path, log=found.path)
    process = [found.process.pid, found.process.start] if found.process else None
    op = await agent.do("adopt", run_id=record.run_id, log=found.path, process=process, record=asdict(record))
    known = read_record(op["record"], f"the record of what follows {found.path} on {agent.host.name}")
    record = replace(known, host=agent.spec.name, path=f"{agent.workdir}/dflash-runs/{known.run_id}")
    return LaunchedRun(record, await status(agent, record.run_id), already=False)


def _process(found: Json) -> Process:
    words: list[Any] = list(found["argv"])
    pid, start = int(found["pid"]), int(found["start"])
    if not 0 < pid <= _MAX_PID:
        raise ValueError(f"a pid of {pid}")
    return Process(pid, start, tuple(str(word) for word in words), float(found["age_s"]))

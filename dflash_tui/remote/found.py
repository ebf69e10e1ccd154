"""The runs that lie on a host, whoever launched them: a fresh laptop finds them all."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG
from dflash_tui.remote.launch import read_record
from dflash_tui.remote.status import RunStatus, read_status
from dflash_tui.runs import RunRecord, RunState

_LIST_S = 60.0


@dataclass(frozen=True, slots=True)
class FoundRun:
    record: RunRecord
    status: RunStatus


async def runs_of(agent: AgentClient, tell: Callable[[str], None]) -> list[FoundRun]:
    """All runs of the agent's workdir, as this host calls them. `tell` hears of those whose folder is damaged.

    A launch that was cut off before anything ran is none.
    """
    found = []
    for one in (await agent.do("list", timeout_s=_LIST_S))["runs"]:
        try:
            status = read_status(one)
            if status.state is RunState.ABSENT:
                continue
            record = read_record(one.get("record"), f"run.json of {status.run_id} on {agent.host.name}")
            if record.run_id != status.run_id:
                raise HostError(f"run.json of {status.run_id} on {agent.host.name} is that of {record.run_id}")
        except HostError as e:
            tell(f"{e}; it is left out")
            continue
        path = f"{agent.workdir}/dflash-runs/{record.run_id}"
        log = f"{path}/{LOG}" if record.kind == "train" else record.log
        found.append(FoundRun(replace(record, host=agent.spec.name, path=path, log=log), status))
    return found

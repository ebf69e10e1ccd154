"""When the GPUs of a host are looked at, beside the sweeps of its logs, and which runs that tells of.

A tool that takes its time holds up nothing: the agent asks it, and hands out the answer with a later request.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from dflash_tui.errors import HostError, LinkLostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.machine import sample_gpus
from dflash_tui.runs import GpuSample

EVERY_S = 10.0
# Until an answer that is being made is asked for.
_SOON_S = 1.0
# A machine without GPUs may get its driver while a run goes on.
_NONE_S = 300.0


class GpuWatch:
    """The pace of one host."""

    def __init__(self) -> None:
        self._due = 0.0
        self._since = 0.0

    async def look(self, agent: AgentClient, run_ids: Sequence[str]) -> dict[str, list[GpuSample]]:
        """What is new, by run; nothing most times. LinkLostError alone is raised."""
        if time.monotonic() < self._due or not run_ids:
            return {}
        self._due = time.monotonic() + _NONE_S
        seen = None
        with suppress(HostError):
            try:
                seen = await sample_gpus(agent, run_ids, since=self._since, every_s=EVERY_S)
            except LinkLostError:
                self._due = 0.0
                raise
        if seen is None:
            return {}
        if seen.taken is None:
            self._due = time.monotonic() + _SOON_S
            return {}
        self._since = seen.taken
        if seen.has_gpus:
            self._due = time.monotonic() + EVERY_S - _SOON_S
        return {run_id: samples for run_id, samples in seen.runs.items() if samples}

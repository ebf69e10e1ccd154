"""Read what is new of many runs on one host, with their states, in one request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.status import RunStatus, read_status
from dflash_tui.runs import Cursor, RunRecord

LOG = "train_log.jsonl"
# What stands for the log of a run that has no other than what it prints.
OUTPUT = "output"
_STREAM = re.compile(re.escape(LOG) + r"|attempts/[1-9][0-9]{0,5}/output\.log")
_RESETS = (None, "rotated", "truncated", "rewritten")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of `stream` beyond the old cursor, or, with a `reset` ("rotated", "truncated", "rewritten"), the first ones
    of a new generation. `cursor` is the next one."""

    stream: str
    data: bytes
    cursor: Cursor
    reset: str | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What one sweep brought of a run. `status` was taken before the bytes were read: when it is over and nothing is
    left (`has_more` is false), the log is complete. It has no ages and no checkpoint: those are asked for alone."""

    status: RunStatus
    chunks: list[Chunk]
    has_more: bool

    @property
    def is_news(self) -> bool:
        """Whether there is anything to keep."""
        return any(chunk.data or chunk.reset for chunk in self.chunks)


def log_source(record: RunRecord) -> str | None:
    """Which file of its host stands for a run's `train_log.jsonl`, as `sweep` takes it."""
    if record.path is None or record.log is None or record.log == f"{record.path}/{LOG}":
        return None
    inside = record.log.removeprefix(f"{record.path}/")
    return OUTPUT if inside != LOG and _STREAM.fullmatch(inside) else record.log


async def sweep(
    agent: AgentClient,
    wanted: Mapping[str, Mapping[str, Cursor]],
    *,
    logs: Mapping[str, str | None] | None = None,
    timeout_s: float = 30,
) -> dict[str, Heard | HostError]:
    """For each run id of `wanted`, with its cursor for each stream that was read before: its state and what is new.

    Streams are `train_log.jsonl` and `attempts/<n>/output.log`; `logs` names what stands for the first one of a run, if
    it is not the file of that name (see `log_source`). A run that cannot be read is an error of its own; a lost link is
    raised. Sweep again at once while `has_more`.
    """
    ops: list[Json] = [
        {
            "op": "follow",
            "run_id": run_id,
            "cursors": cursors,
            "log": (logs or {}).get(run_id),
            "is_known": run_id in agent.told,
        }
        for run_id, cursors in wanted.items()
    ]
    answers = await agent.ask(ops, timeout_s=timeout_s)
    heard: dict[str, Heard | HostError] = {}
    for run_id, (result, data) in zip(wanted, answers, strict=True):
        try:
            what = _heard(agent.accepted(result), data, agent.told.get(run_id))
        except HostError as e:
            agent.told.pop(run_id, None)
            heard[run_id] = e
        else:
            agent.told[run_id] = what.status
            heard[run_id] = what
    return heard


def _heard(result: Json, data: bytes, told: RunStatus | None) -> Heard:
    chunks, has_more, begin = [], False, 0
    try:
        for meta in result["chunks"]:
            end = begin + _size(meta["bytes"])
            cursor = Cursor(_size(meta["offset"]), _size(meta["inode"]), str(meta["anchor"]))
            if not _STREAM.fullmatch(meta["stream"]) or meta["reset"] not in _RESETS:
                raise ValueError("no stream of a run, or no reset")
            chunks.append(Chunk(meta["stream"], data[begin:end], cursor, meta["reset"]))
            has_more = has_more or bool(meta["more"])
            begin = end
        if begin != len(data):
            raise ValueError(f"{len(data)} bytes for chunks of {begin}")
        status = told if told and result["status"] is None else read_status(result["status"])
        return Heard(status, chunks, has_more)
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        raise HostError(f"the agent gave a log that cannot be read: {e!r}") from e


def _size(value: Any) -> int:
    size = int(value)
    if size < 0:
        raise ValueError(f"a size of {size}")
    return size

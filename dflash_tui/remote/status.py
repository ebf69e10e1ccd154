"""What a host says of a run, as a frozen value. Nothing from a host is believed to have the right shape."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dflash_tui.errors import HostError
from dflash_tui.runs import RunState, is_run_id
from dflash_tui.text import visible

T = TypeVar("T")

REASONS = frozenset(
    {
        "completed",
        "stopped",
        "killed-after-grace",
        "saved",
        "nan",
        "oom-gpu",
        "oom-host-likely",
        "disk-full",
        "environment",
        "error",
        "signal",
        "host-rebooted",
        "container-restarted",
        "killed",
    }
)
# More than the agent ever says, less than what floods a screen.
_NOTE_CHARACTERS = 1000
# Codes, signals, attempts and pids: what the store's integers hold.
_MAX_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    path: str
    step: int
    age_s: float


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run's state now. Ages are by its host's clock; `note` is a sentence, or the last words of a run that failed.

    `reason` is one of REASONS; `note` and paths have their control characters escaped.
    """

    run_id: str
    state: RunState
    reason: str | None
    code: int | None
    signal: int | None
    attempt: int | None
    pid: int | None
    age_s: float | None
    heartbeat_age_s: float | None
    note: str | None
    checkpoint: Checkpoint | None


def read_status(found: dict[str, Any]) -> RunStatus:
    """An agent's answer as a status; HostError if it is none."""
    try:
        if not is_run_id(found["run_id"]):
            raise ValueError("no run id")
        return RunStatus(
            run_id=found["run_id"],
            state=RunState(found["state"]),
            reason=_optional(_reason, found["reason"]),
            code=_optional(_integer, found["code"]),
            signal=_optional(_integer, found["signal"]),
            attempt=_optional(_integer, found["attempt"]),
            pid=_optional(_integer, found["pid"]),
            age_s=_optional(_seconds, found["age_s"]),
            heartbeat_age_s=_optional(_seconds, found["heartbeat_age_s"]),
            note=_optional(_note, found["note"]),
            checkpoint=_optional(_checkpoint, found["checkpoint"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        raise HostError(f"the agent gave a status that cannot be read ({e!r}): {str(found)[:200]}") from e


def _reason(value: Any) -> str:
    if value not in REASONS:
        raise ValueError("no reason for an end")
    return str(value)


def _integer(value: Any) -> int:
    number = int(value)
    if abs(number) > _MAX_INTEGER:
        raise ValueError("an integer out of its range")
    return number


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("an age without end")
    return seconds


def _note(value: Any) -> str:
    return visible(str(value)[:_NOTE_CHARACTERS])


def _checkpoint(value: Any) -> Checkpoint:
    return Checkpoint(visible(str(value["path"])), int(value["step"]), _seconds(value["age_s"]))


def _optional(kind: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else kind(value)

"""What a host says of a run, as a frozen value. Nothing from a host is believed to have the right shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dflash_tui.errors import HostError
from dflash_tui.runs import RunState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    path: str
    step: int
    age_s: float


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run's state now. Ages are by its host's clock; `note` is a sentence, or the last words of a run that failed."""

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
        checkpoint = found["checkpoint"]
        return RunStatus(
            run_id=str(found["run_id"]),
            state=RunState(found["state"]),
            reason=_optional(str, found["reason"]),
            code=_optional(int, found["code"]),
            signal=_optional(int, found["signal"]),
            attempt=_optional(int, found["attempt"]),
            pid=_optional(int, found["pid"]),
            age_s=_optional(float, found["age_s"]),
            heartbeat_age_s=_optional(float, found["heartbeat_age_s"]),
            note=_optional(str, found["note"]),
            checkpoint=checkpoint
            and Checkpoint(str(checkpoint["path"]), int(checkpoint["step"]), float(checkpoint["age_s"])),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise HostError(f"the agent gave a status that cannot be read ({e!r}): {str(found)[:200]}") from e


def _optional(kind: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else kind(value)

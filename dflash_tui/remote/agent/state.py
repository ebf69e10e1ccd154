"""What a run's state is now, by the facts on this machine and this machine's clock. Changes nothing."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from . import adopted, proc
from .errors import DAMAGE, Refused, sentence
from .folder import RUNS, Attempt, Run, absolute, is_locked, read_json
from .mounts import is_full, is_read_only
from .verdict import logged_end, verdict

OVER = ("finished", "stopped", "interrupted", "failed", "lost")
ALIVE = ("starting", "running", "stopping", "orphaned")
UNKNOWN = dict.fromkeys(
    ("reason", "code", "signal", "attempt", "pid", "age_s", "heartbeat_age_s", "note", "checkpoint")
)
_LOST = {
    "host-rebooted": "its machine was started anew while it ran: resume it",
    "container-restarted": "its container was started anew while it ran: resume it",
    "killed": "it was killed together with its supervisor, nobody here knows by whom: look at memory, then resume it",
}


def status(run: Run) -> Dict[str, Any]:
    """State, reason, code, signal, attempt, pid, ages in seconds and the newest checkpoint of a run."""
    found, _ = look(run)
    if "heartbeat_age_s" not in found and found["state"] in (*ALIVE, "lost") and found["attempt"]:
        found["heartbeat_age_s"] = run.attempt(found["attempt"]).heartbeat_age_s()
    return {**UNKNOWN, **found, "checkpoint": run.checkpoint()}


def look(run: Run) -> Tuple[Dict[str, Any], List[int]]:
    """What is known of a run's state, and the numbers of its attempts that it was seen by."""
    # Asked before anything is read: a run that ends while we look is then still "running", and over the next time.
    locked = is_locked(run)
    numbers = run.attempts()
    return {"run_id": run.run_id, "attempt": None, **newest_attempt(run, locked, numbers)}, numbers


def statuses(workdir: str) -> Dict[str, Any]:
    """All runs of a workdir: their states and what `run.json` says of them.

    Folders with other names are no runs, and damaged ones are left out.
    """
    runs = []
    try:
        names = sorted(os.listdir(os.path.join(absolute(workdir), RUNS)))
    except FileNotFoundError:
        names = []
    for name in names:
        try:
            run = Run(workdir, name)
            runs.append({**status(run), "record": read_json(os.path.join(run.path, "run.json"))})
        except (Refused, NotADirectoryError, *DAMAGE):
            continue
        except OSError as e:
            runs.append({"run_id": name, "state": "absent", "note": sentence(e)})
    return {"runs": runs}


def newest_attempt(run: Run, locked: bool, numbers: List[int]) -> Dict[str, Any]:
    """The part of `status` that the newest of these attempts decides, with or without a living supervisor."""
    for number in reversed(numbers):
        attempt = run.attempt(number)
        found = _of_attempt(attempt, locked)
        if found:
            return {"attempt": number, **found}
        if locked:
            return {"attempt": number, "state": "starting"}
        # Neither state nor supervisor: a launch that was cut off. What was before it counts, and it can be repeated.
    return {"state": "starting" if locked else "absent"}


def _of_attempt(attempt: Attempt, locked: bool) -> Optional[Dict[str, Any]]:
    end, state, is_stopping = attempt.records()
    if end:
        return _ended(end)
    if state is None:
        return None
    if "adopted" in state and not locked:
        return {**adopted.state_now(attempt, state), "attempt": attempt.number}
    found = {"pid": state["child"][0] if state["child"] else None, "age_s": time.time() - state["started"]}
    if locked:
        return {**found, "state": "stopping" if is_stopping else "running", **_unwritten_end(attempt, state)}
    end = attempt.read("exit.json")
    if end:
        return _ended(end)
    return {**found, **_without_supervisor(attempt, state)}


def _unwritten_end(attempt: Attempt, state: Dict[str, Any]) -> Dict[str, Any]:
    """Of a training that has ended, while the disk does not let its supervisor write that down; else nothing."""
    if is_read_only(attempt.path):
        why = "its disk is mounted read-only: mount it writable"
    elif is_full(attempt.path):
        why = "its disk is full: make room"
    else:
        return {}
    if state["child"] is None or proc.is_alive(proc.Process(*state["child"])):
        return {}
    return {"pid": None, "note": "its process has ended, and how cannot be written down: %s" % why}


def _ended(end: Dict[str, Any]) -> Dict[str, Any]:
    found = {name: end[name] for name in ("state", "reason", "code", "signal", "note")}
    if end["state"] == "failed":
        found["note"] = end["note"] or end["said"]
    return {**found, "age_s": time.time() - end["started"]}


def _without_supervisor(attempt: Attempt, state: Dict[str, Any]) -> Dict[str, Any]:
    """Orphaned while the training lives; else how it ended, if it said so itself, else lost and why."""
    here = proc.incarnation()
    same_machine = here == state["where"]
    if same_machine and living(attempt, state):
        return {"state": "orphaned", "note": "its supervisor is gone; it can be watched and stopped"}
    log_reason, code = logged_end(attempt.run.log, state["log_bytes"])
    if code is not None:
        ended, reason = verdict({"code": code, "log_reason": log_reason})
        return {"state": ended, "reason": reason, "code": code, "pid": None}
    if same_machine:
        why = "killed"
    elif here["boot_id"] != state["where"]["boot_id"]:
        why = "host-rebooted"
    else:
        why = "container-restarted"
    return {"state": "lost", "reason": why, "pid": None, "note": _LOST[why]}


def living(attempt: Attempt, state: Dict[str, Any]) -> List[proc.Process]:
    """The processes of an attempt whose supervisor is gone."""
    return proc.members(attempt.run.mark, leader=proc.Process(*state["child"]))

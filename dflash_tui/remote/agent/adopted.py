"""Runs that we did not start: a log that somebody writes, and its process if that could be found.

Such a run has a folder like all others, with a state that says what was found; only its end is never known for sure.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Any, Dict, List, Optional, Set

from . import proc
from .errors import DAMAGE, Refused, sentence
from .folder import RUNS, Attempt, Run, absolute, make_private, read_json, take_lock, write_json
from .verdict import logged_end, verdict
from .writer import age_s, described, find_writer

# A log of which nobody is known to write it counts as one that is written, as long as it was touched within this time.
QUIET_S = 3600.0


def look(op: Dict[str, Any]) -> Dict[str, Any]:
    """What can be found out about `log`: its absolute path, size and age, and who writes it."""
    path = _path(op)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise Refused("there is no %s; %s" % (path, _neighbours(path))) from None
    if not stat.S_ISREG(found.st_mode):
        raise Refused("%s is no plain file" % path)
    runs = os.path.join(absolute(op["workdir"]), RUNS, "")
    if os.path.realpath(path).startswith(os.path.realpath(runs) + os.sep):
        raise Refused("%s belongs to a run that was started from here: `hosts scan` finds that" % path)
    writer = find_writer(path)
    others = [process for process in (proc.find(pid) for pid in writer.others) if process]
    return {
        "log": path,
        "size": found.st_size,
        "age_s": max(0.0, time.time() - found.st_mtime),
        "process": described(writer.process) if writer.process else None,
        "how": writer.how,
        "others": [described(process) for process in others],
        "num_hidden": writer.num_hidden,
    }


def adopt(op: Dict[str, Any]) -> Dict[str, Any]:
    """Make a run of `log` and its `process` ([pid, start] or null), with `record`; the `record` that it has then.

    A run that followed this log before, and is over, goes on as its next attempt. The same again changes nothing.
    """
    run = Run(op["workdir"], op["run_id"])
    make_private(os.path.dirname(run.path))
    before = _follower(run, op["log"])
    if before and _is_alive(before):
        raise Refused(
            "%s is followed as run %s already: `hosts scan` brings that here" % (op["log"], before.run.run_id)
        )
    run = before.run if before else run
    make_private(run.path)
    lock = take_lock(run)
    if lock is None:
        raise Refused("run %s is being made by somebody else in this moment" % run.run_id)
    try:
        attempt = run.attempt(before.number + 1 if before else 1)
        if attempt.read("state.json") is None:
            os.makedirs(attempt.path, mode=0o700, exist_ok=True)
            if not before:
                write_json(os.path.join(run.path, "run.json"), op["record"])
            attempt.write("state.json", _state(attempt, op))
    finally:
        os.close(lock)
    return {"record": read_json(os.path.join(run.path, "run.json"))}


def state_now(attempt: Attempt, state: Dict[str, Any]) -> Dict[str, Any]:
    """How an adopted run stands, by its process, else by its log."""
    log = state["adopted"]["log"]
    try:
        quiet_s: Optional[float] = max(0.0, time.time() - os.stat(log).st_mtime)
    except OSError:
        quiet_s = None
    found = {"pid": None, "heartbeat_age_s": quiet_s}
    here, leader = proc.incarnation(), leader_of(state)
    if leader and here == state["where"] and proc.is_alive(leader):
        return {**found, "state": "running", "pid": leader.pid, "age_s": age_s(leader)}
    found["age_s"] = time.time() - state["started"]
    reason, code = logged_end(log, state["log_bytes"])
    if code is not None:
        ended, reason = verdict({"code": code, "log_reason": reason})
        return {**found, "state": ended, "reason": reason, "code": code}
    if here["boot_id"] != state["where"]["boot_id"]:
        return {
            **found,
            "state": "lost",
            "reason": "host-rebooted",
            "note": "its machine was started anew while it ran",
        }
    if here != state["where"]:
        note = "its container was started anew while it ran"
        return {**found, "state": "lost", "reason": "container-restarted", "note": note}
    if leader:
        return {**found, "state": "lost", "note": "its process is gone, and nobody here can know how it ended"}
    if quiet_s is not None and quiet_s < QUIET_S:
        return {**found, "state": "orphaned", "note": "its process is not known: it can be followed, but not stopped"}
    why = "there is no log any more" if quiet_s is None else "nothing was written for an hour"
    return {**found, "state": "lost", "note": "its process is not known, and %s" % why}


def leader_of(state: Dict[str, Any]) -> Optional[proc.Process]:
    return proc.Process(*state["child"]) if state["child"] else None


class Tree:
    """A process and all that descends from it, also once it is gone and they have another parent."""

    def __init__(self, leader: proc.Process) -> None:
        self._seen: Set[proc.Process] = {leader}

    def living(self) -> List[proc.Process]:
        for process in list(self._seen):
            if proc.is_alive(process):
                children = [proc.find(pid) for pid in proc.descendants(process.pid)]
                self._seen |= {child for child in children if child and child.pid != os.getpid()}
        self._seen = {process for process in self._seen if proc.is_alive(process)}
        return list(self._seen)


def _state(attempt: Attempt, op: Dict[str, Any]) -> Dict[str, Any]:
    process = proc.Process(*op["process"]) if op["process"] else None
    if process and not proc.is_alive(process):
        raise Refused("process %d, which wrote %s, has just ended: try again" % (process.pid, op["log"]))
    return {
        "run_id": attempt.run.run_id,
        "attempt": attempt.number,
        "where": proc.incarnation(),
        "supervisor": None,
        "child": process,
        "started": time.time() - (age_s(process) if process else 0.0),
        # An end that was logged before is another run's, if this one still lives.
        "log_bytes": os.stat(op["log"]).st_size if process else 0,
        "adopted": {"log": op["log"]},
    }


def _follower(run: Run, log: str) -> Optional[Attempt]:
    """The newest attempt of another run that follows this log; of several the one that is not over, if any."""
    folder = os.path.dirname(run.path)
    found = None
    for name in sorted(os.listdir(folder)):
        try:
            other = Run(os.path.dirname(folder), name)
            newest = other.attempt(max(other.attempts(), default=1))
            state = newest.read("state.json") or {}
            if name != run.run_id and state.get("adopted", {}).get("log") == log and not (found and _is_alive(found)):
                found = newest
        except (Refused, OSError, *DAMAGE):
            continue
    return found


def _is_alive(attempt: Attempt) -> bool:
    state = attempt.read("state.json")
    is_over = attempt.read("exit.json") is not None or state is None
    return not is_over and state_now(attempt, state or {})["state"] in ("running", "orphaned")


def _path(op: Dict[str, Any]) -> str:
    log = op["log"]
    if not isinstance(log, str) or not log or "\0" in log:
        raise Refused("%r is no path of a log" % (log,))
    return os.path.normpath(os.path.join(absolute(op["workdir"]), os.path.expanduser(log)))


def _neighbours(path: str) -> str:
    folder = os.path.dirname(path)
    try:
        entries = [entry for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith(".")]
    except OSError as e:
        return sentence(e)
    names = [entry.name for entry in sorted(entries, key=lambda entry: -entry.stat().st_mtime)]
    return "there are %s" % ", ".join(names[:5]) if names else "its folder is empty"

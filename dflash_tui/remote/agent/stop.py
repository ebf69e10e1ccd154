"""Asking a run to end. Its supervisor does the work, and where that is gone a new one takes over; nobody waits here."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict

from . import proc
from .errors import Refused, sentence
from .folder import Attempt, Run, take_lock
from .start import spawn
from .state import OVER, status


def stop(op: Dict[str, Any]) -> Dict[str, Any]:
    """Ask a run to end within `grace_s` seconds (0: at once); its status. A second request can shorten the grace.

    A run that is over stays as it is.
    """
    run = Run(op["workdir"], op["run_id"])
    found = status(run)
    if found["state"] == "absent":
        raise Refused("there is no run %s in %s" % (run.run_id, os.path.dirname(run.path)))
    if found["state"] in OVER:
        return found
    if found["attempt"] is None:
        raise Refused("run %s is being started in this moment: try again" % run.run_id)
    attempt = run.attempt(found["attempt"])
    is_adopted = "adopted" in (attempt.read("state.json") or {})
    if is_adopted and found["pid"] is None:
        raise Refused("run %s was not started from here, and its process is not known: end it yourself" % run.run_id)
    try:
        attempt.fill("stop.json", {"grace_s": float(op["grace_s"]), "asked": time.time()})
    except OSError as e:
        raise Refused("run %s cannot be stopped: %s" % (run.run_id, sentence(e))) from None
    if found["state"] == "orphaned" or is_adopted:
        _take_over(attempt)
    else:
        _poke(attempt)
    return status(run)


def _poke(attempt: Attempt) -> None:
    """Wake the supervisor, which would else look within a second. Its handlers stand before its state is written."""
    state = attempt.read("state.json")
    if state and state["supervisor"]:
        proc.send(proc.Process(*state["supervisor"]), signal.SIGUSR1)


def _take_over(attempt: Attempt) -> None:
    lock = take_lock(attempt.run)
    if lock is None:  # Another one has taken over in this moment.
        return
    try:
        problem = spawn(attempt, "take-over", lock)
    finally:
        os.close(lock)
    if problem:
        raise Refused("run %s cannot be stopped: %s" % (attempt.run.run_id, problem))

"""How an attempt ended: from facts to the closed list of states and reasons. Reads the ends of two logs, no more."""

from __future__ import annotations

import json
import os
import signal
from typing import Any, Dict, List, Optional, Tuple

SAVED = 75
# What the trainer itself may say went wrong; the general words "error" and "signal" are left to the facts.
_REASONS = ("nan", "oom-gpu", "oom-host-likely", "disk-full", "environment")
_POLITE = (signal.SIGTERM, signal.SIGINT)
_TAIL_BYTES = 1 << 16
# Parts of a traceback's last line, and of what the interpreter says when it finds no module to run.
_TELLTALES = (
    ("environment", ("ModuleNotFoundError", "ImportError", "No module named")),
    ("oom-gpu", ("CUDA out of memory", "OutOfMemoryError")),
    ("oom-host-likely", ("MemoryError", "DefaultCPUAllocator: can't allocate memory")),
    ("disk-full", ("No space left on device", "Disk quota exceeded")),
)


def verdict(facts: Dict[str, Any]) -> Tuple[str, str]:
    """State and reason of an attempt that is over.

    `facts`: code, signal (either or both None), stop_seen (a stop was seen while the trainer lived), killed (by us,
    when its grace was over), had_grace (false: it was to be killed at once), oom_kills (rise of the counter),
    log_reason and log_code (the trainer's own, from its `end` record), said (its last words), and disk_full (there was
    no room for any).
    """
    code, number = facts.get("code"), facts.get("signal")
    if number in _POLITE and facts.get("log_code") in (0, SAVED):
        # The signal hit a Python that was closing already, where nothing catches it: what it had logged holds.
        code, number = facts["log_code"], None
    if code == 0:
        return "finished", "completed"
    if facts.get("stop_seen"):
        if facts.get("killed"):
            return "stopped", "killed-after-grace" if facts.get("had_grace", True) else "stopped"
        # Saved, or ended by the stop itself because nobody caught it; with neither code nor signal nobody knows.
        if code == SAVED or number in _POLITE or (code is None and number is None):
            return "stopped", "stopped"
    elif code == SAVED:
        return "interrupted", "saved"
    return "failed", _why(facts)


def _why(facts: Dict[str, Any]) -> str:
    said = str(facts.get("said") or "")
    logged = facts.get("log_reason")
    if logged == "oom":
        return "oom-gpu" if "CUDA" in said else "oom-host-likely"
    if logged in _REASONS:
        return str(logged)
    if facts.get("oom_kills"):
        return "oom-host-likely"
    if facts.get("signal"):
        return "signal"
    if facts.get("code") in (126, 127):
        return "environment"
    for reason, phrases in _TELLTALES:
        if any(phrase in said for phrase in phrases):
            return reason
    return "disk-full" if facts.get("disk_full") else "error"


def last_words(path: str) -> str:
    """The last line of an output that is not empty, at most 200 characters of it."""
    lines = [line.strip() for line in _tail(path, 0) if line.strip()]
    return lines[-1].decode("utf-8", "replace")[:200] if lines else ""


def logged_end(path: str, since: int) -> Tuple[Optional[str], Optional[int]]:
    """Reason and exit code of the trainer's last `end` record that was logged after byte `since`."""
    for line in reversed(_tail(path, since)):
        if b'"end"' not in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and record.get("event") == "end":
            reason, code = record.get("reason"), record.get("exit_code")
            return reason[:40] if isinstance(reason, str) else None, code if isinstance(code, int) else None
    return None, None


def _tail(path: str, since: int) -> List[bytes]:
    try:
        with open(path, "rb") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(since, size - _TAIL_BYTES))
            return f.read(_TAIL_BYTES).splitlines()
    except OSError:
        return []

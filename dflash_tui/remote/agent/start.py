"""Launching: the folder of an attempt, then a supervisor that is nobody's child.

A launch may be asked twice and is done once; one that fails leaves nothing behind.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Any, Dict, NoReturn, Optional

from .errors import Refused, sentence
from .folder import CODE, OUTPUT_LOG, RUNS, Attempt, Run, absolute, make_private, take_lock, write_json
from .state import newest_attempt, status

# Nothing of the machine's Python is loaded, and paths are UTF-8 whatever its locale is.
FLAGS = ("-I", "-S", "-X", "utf8")


def launch(op: Dict[str, Any]) -> Dict[str, Any]:
    """Start attempt `attempt` of a run, with `spec`, `config` and, for the first, `record`; its status.

    `already` is true in the answer if that attempt was there before.
    """
    run = Run(op["workdir"], op["run_id"])
    attempt = run.attempt(int(op["attempt"]))
    is_new = not os.path.exists(run.path)
    try:
        make_private(os.path.join(absolute(op["workdir"]), RUNS))
        make_private(run.path)
        lock = take_lock(run, attempt)
    except OSError as e:
        raise Refused("the run cannot be started: %s" % sentence(e)) from None
    if lock is None:
        return {**status(run), "already": True}
    try:
        before = newest_attempt(run, locked=False, numbers=run.attempts())
        if before["state"] == "orphaned":
            raise Refused(
                "run %s still lives (pid %d), without its supervisor: stop it first" % (run.run_id, before["pid"])
            )
        newest = before.get("attempt") or 0
        if newest >= attempt.number:
            return {**status(run), "already": True}
        if attempt.number != newest + 1:
            raise Refused("attempt %d of run %s cannot follow attempt %d" % (attempt.number, run.run_id, newest))
        _start(attempt, op, lock, leave_no_run=is_new)
    finally:
        os.close(lock)
    return {**status(run), "already": False}


def spawn(attempt: Attempt, verb: str, lock: int) -> Optional[str]:
    """Run this agent's `verb` on an attempt, detached for good and holding the lock; why not, if it does not start."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        _detach(attempt, verb, lock, tell)
    os.close(tell)
    os.waitpid(child, 0)
    with open(told, encoding="utf-8", errors="replace") as f:
        answer = f.read()
    return None if answer == "ok" else answer or "its supervisor died at once"


def _start(attempt: Attempt, op: Dict[str, Any], lock: int, leave_no_run: bool) -> None:
    run = attempt.run
    try:
        _check_space(run.path, int(op.get("min_free_bytes", 0)))
        # What a launch that was cut off has left there, a request to stop it even.
        shutil.rmtree(attempt.path, ignore_errors=True)
        os.makedirs(attempt.path, mode=0o700)
        if attempt.number == 1:
            write_json(os.path.join(run.path, "run.json"), op["record"])
        attempt.write("spec.json", op["spec"])
        attempt.write("config.json", op["config"])
        if op.get("code"):
            _link_code(run, op["code"])
        attempt.reserve("stop.json")
        attempt.reserve("exit.json")
        problem = spawn(attempt, "supervise", lock)
    except (OSError, Refused) as e:
        problem = sentence(e) if isinstance(e, OSError) else str(e)
    if problem:
        # We still hold the lock, so nobody else is in there.
        shutil.rmtree(run.path if leave_no_run else attempt.path, ignore_errors=True)
        raise Refused("the run cannot be started in %s: %s" % (run.path, problem))


def _check_space(path: str, needed: int) -> None:
    found = os.statvfs(path)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise Refused("the disk has %d MB free, and a run needs %d: free some space" % (free >> 20, needed >> 20))


def _link_code(run: Run, sha256: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise Refused("%r is no hash of code" % sha256)
    link = os.path.join(run.path, "code")
    part = link + ".part"
    if os.path.islink(part):
        os.unlink(part)
    os.symlink(os.path.join("..", "..", CODE, sha256), part)
    os.rename(part, link)


def _detach(attempt: Attempt, verb: str, lock: int, tell: int) -> NoReturn:
    """In the first child: a session of our own, a second fork, no descriptor of the link, then the agent anew.

    A fresh interpreter, so that `ps` names what runs there and nothing of the launching agent stays in memory.
    """
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.umask(0o077)
        null = os.open(os.devnull, os.O_RDONLY)
        output = os.open(attempt.file(OUTPUT_LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, standard in ((null, 0), (output, 1), (output, 2)):
            os.dup2(fd, standard)
        for fd in (lock, tell):
            os.set_inheritable(fd, True)
        words = [verb, os.path.dirname(os.path.dirname(attempt.run.path)), attempt.run.run_id, str(attempt.number)]
        argv = [sys.executable, *FLAGS, sys.argv[0], *words, str(lock), str(tell)]
        os.execv(sys.executable, argv)
    except OSError as e:
        os.write(tell, sentence(e).encode())
    finally:
        os._exit(1)

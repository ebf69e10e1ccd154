"""The parent of one training: starts it, forwards a stop, ends what it leaves behind, and writes down how it ended.

It lives in a session of its own, holds the run's lock for its whole life, and is the only writer of `exit.json`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional

from . import proc
from .adopted import Tree
from .environment import environment
from .errors import Refused, sentence
from .folder import MARK, OUTPUT_LOG, Attempt
from .mounts import is_full
from .state import living
from .verdict import last_words, logged_end, verdict

HEARTBEAT_S = 5.0
# For what outlives the trainer: long enough to close a file, short enough to free its GPU for the next run.
LEFTOVER_GRACE_S = 5.0
KILL_AGAIN_S = 5.0
# A full disk may hold up exit.json where reserved blocks do not help (copy-on-write file systems).
WRITE_PATIENCE_S = 600


class Supervisor:
    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self._log = attempt.run.log
        self._stop: Optional[Dict[str, Any]] = None
        self._stop_seen: Optional[float] = None
        self._grace_s = LEFTOVER_GRACE_S
        self._kill_at: Optional[float] = None
        self._killed = False
        self._had_grace = False
        self._beat_at = time.monotonic()
        self._wake = proc.wake_on_signals()
        self._oom_kills = proc.oom_kills()
        self._state: Dict[str, Any] = {
            "run_id": attempt.run.run_id,
            "attempt": attempt.number,
            "where": proc.incarnation(),
            "supervisor": proc.find(os.getpid()),
            "started": time.time(),
            "log_bytes": _size(attempt.run.log),
        }

    def supervise(self, tell: int) -> None:
        """The whole life of an attempt. `tell` is a pipe that gets "ok" once it runs, or why it does not."""
        spec = self.attempt.read("spec.json") or {}
        proc.adopt_strays()
        try:
            child = self._start(spec)
        except OSError as e:
            code = 127 if isinstance(e, FileNotFoundError) else 126
            self._conclude(code, note="cannot start %s: %s" % (spec["argv"][0], sentence(e)))
            _answer(tell, "ok")
            return
        try:
            self.attempt.write("state.json", {**self._state, "child": proc.find(child.pid)})
        except OSError as e:
            # No room for the state: a training that nobody can find must not run.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            _answer(tell, sentence(e))
            return
        _answer(tell, "ok")
        code = self._watch(child)
        oom_kills = self._oom_rise()
        self._conclude(code, oom_kills=oom_kills, leftovers=self._end_leftovers())

    def take_over(self, tell: int) -> None:
        """Stop a training whose supervisor is gone, or never was, and write down that it ended. How, only its log can
        say."""
        state = self.attempt.read("state.json") or {}
        self._state.update({name: state[name] for name in ("started", "log_bytes")})
        self._log = state.get("adopted", {}).get("log", self._log)
        _answer(tell, "ok")
        self._see_stop()
        if "adopted" in state:
            self._end_tree(proc.Process(*state["child"]))
            note = "it was not started from here, so only its log says how it ended"
        else:
            self._end(lambda: living(self.attempt, state))
            note = "its supervisor was gone, so only its log says how it ended"
        _, code = logged_end(self._log, state["log_bytes"])
        self._conclude(code, note=note)

    def _end_tree(self, leader: proc.Process) -> None:
        """Ask the one process that a person has confirmed, which may save; what it leaves has no time of its own."""
        tree = Tree(leader)
        tree.living()
        proc.send(leader, signal.SIGTERM)
        while proc.is_alive(leader) and not self._is_kill_due():
            self._see_stop()
            self._pause(0.2)
            tree.living()
        self._killed = proc.is_alive(leader)
        self._kill_at = time.monotonic() + (0.0 if self._killed else min(LEFTOVER_GRACE_S, self._grace_s))
        was_killed = self._killed
        self._end(tree.living)
        self._killed = was_killed

    def _end(self, living: Callable[[], List[proc.Process]]) -> None:
        """TERM, and after the grace KILL, until nobody lives."""
        left = living()
        _signal_all(left, signal.SIGTERM)
        while left:
            self._see_stop()
            if self._is_kill_due():
                self._killed = True
                _signal_all(left, signal.SIGKILL)
            self._beat()
            self._pause(0.2)
            left = living()

    def _start(self, spec: Dict[str, Any]) -> subprocess.Popen[bytes]:
        run, number = self.attempt.run, str(self.attempt.number)
        ours = {MARK: run.path, "DFLASH_RUN_ID": run.run_id, "DFLASH_ATTEMPT": number}
        # Our own stdout and stderr are output.log already.
        return subprocess.Popen(
            spec["argv"],
            cwd=self.attempt.run.path,
            env=environment(spec.get("python", {}).get("executable"), spec.get("env", {}), ours),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _watch(self, child: subprocess.Popen[bytes]) -> int:
        """The child's return code, as subprocess gives it. Until then it is not reaped, so its pid is nobody else's."""
        while True:
            self._pause(1.0)
            code = child.poll()
            if code is not None:
                self._killed = self._killed and code in (-signal.SIGKILL, 128 + signal.SIGKILL)
                return code
            proc.reap_strays(child.pid)
            if self._see_stop():
                os.killpg(child.pid, signal.SIGTERM)
                os.killpg(child.pid, signal.SIGCONT)
            if self._is_kill_due():
                self._killed = True
                _signal_all(self._members(proc.find(child.pid)), signal.SIGKILL)
            self._beat()

    def _see_stop(self) -> bool:
        """Take note of what `stop.json` asks; true for the first request. A later one can only shorten the grace."""
        try:
            request = self.attempt.read("stop.json")
            if request is None or request == self._stop:
                return False
            self._grace_s = float(request["grace_s"])
        except (Refused, KeyError, TypeError, ValueError):
            # Somebody's own file: whatever it holds, it must not end the supervisor.
            return False
        self._had_grace = self._had_grace or self._grace_s > 0
        is_first = self._stop is None
        self._stop = request
        self._stop_seen = self._stop_seen or time.time()
        kill_at = time.monotonic() + self._grace_s
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        return is_first

    def _is_kill_due(self) -> bool:
        """Whether the grace is over; true again from time to time, for what was born meanwhile."""
        if self._kill_at is None or time.monotonic() < self._kill_at:
            return False
        self._kill_at = time.monotonic() + KILL_AGAIN_S
        return True

    def _end_leftovers(self) -> int:
        """A run is over when nothing of it lives: end what outlived the trainer; how many there were."""
        left = self._members()
        count = len(left)
        self._kill_at = time.monotonic() + min(LEFTOVER_GRACE_S, self._grace_s)
        _signal_all(left, signal.SIGTERM)
        while left:
            self._see_stop()
            if self._is_kill_due():
                _signal_all(left, signal.SIGKILL)
            self._beat()
            self._pause(0.2)
            proc.reap_strays()
            left = self._members()
        return count

    def _members(self, leader: Optional[proc.Process] = None) -> List[proc.Process]:
        return proc.members(self.attempt.run.mark, leader, os.getpid())

    def _pause(self, seconds: float) -> None:
        """Until a signal comes, or for `seconds`."""
        select.select([self._wake], [], [], seconds)
        try:
            os.read(self._wake, 512)
        except BlockingIOError:
            pass

    def _beat(self) -> None:
        if time.monotonic() - self._beat_at < HEARTBEAT_S:
            return
        self._beat_at = time.monotonic()
        try:
            # Only the time stamp: that needs no block of the disk.
            os.utime(self.attempt.file("state.json"))
        except OSError:
            pass

    def _oom_rise(self) -> Optional[int]:
        now = proc.oom_kills()
        return None if now is None or self._oom_kills is None else now - self._oom_kills

    def _conclude(
        self, code: Optional[int], oom_kills: Optional[int] = None, leftovers: int = 0, note: Optional[str] = None
    ) -> None:
        """Write exit.json: the facts, and the verdict on them. `code` as subprocess gives it, None if nobody knows."""
        number = -code if code is not None and code < 0 else {137: 9, 143: 15}.get(code or 0)
        log_reason, log_code = logged_end(self._log, self._state["log_bytes"])
        facts: Dict[str, Any] = {
            "code": code if code is None or code >= 0 else None,
            "signal": number,
            "stop_seen": self._stop_seen,
            "killed": self._killed,
            "had_grace": self._had_grace,
            "oom_kills": oom_kills,
            "leftovers": leftovers,
            "log_reason": log_reason,
            "log_code": log_code,
            "said": last_words(self.attempt.file(OUTPUT_LOG)),
            "disk_full": is_full(self.attempt.path),
            "note": note,
        }
        state, reason = verdict(facts)
        if state == "stopped" and self._killed and not self._had_grace:
            facts["note"] = note or "killed at once, as was asked: what it had not saved by then is lost"
        if facts["disk_full"] and reason == "disk-full":
            facts["note"] = note or "the disk is full, so its last words may be missing: make room, then resume it"
        end = {**self._state, **facts, "state": state, "reason": reason, "ended": time.time()}
        for _ in range(WRITE_PATIENCE_S):
            try:
                self.attempt.fill("exit.json", end)
                return
            except OSError:
                time.sleep(1)


def _signal_all(processes: List[proc.Process], number: int) -> None:
    for process in processes:
        proc.send(process, number)


def _answer(tell: int, words: str) -> None:
    try:
        os.write(tell, words.encode())
    except BrokenPipeError:  # The agent that launched us is gone; the run is not.
        pass
    os.close(tell)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0

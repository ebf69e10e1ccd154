"""The folder of a run, its names and its lock; JSON files that are whole or absent, even on a full disk.

    <workdir>/dflash-runs/<run_id>/
      run.json  lock  train_log.jsonl  checkpoints/   code -> ../../dflash-code/<sha256>
      attempts/<n>/   spec.json config.json state.json stop.json exit.json output.log

A file that must be written when the disk is full has its blocks reserved at launch, as `<name>.reserve`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional

from .errors import Refused
from .memory import recall

RUNS, CODE = "dflash-runs", "dflash-code"
LOG, OUTPUT_LOG = "train_log.jsonl", "output.log"
MARK = "DFLASH_RUN_DIR"
RESERVE_BYTES = 4096
LOCK_PATIENCE_S = 2.0
_RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NUMBER = re.compile(r"[1-9]\d{0,5}")
_STEP = re.compile(r"(\d+)$")


class Records(NamedTuple):
    """What the folder of an attempt says of it. Each is written beside it and renamed, so that the folder's own times
    tell of every change."""

    end: Optional[Dict[str, Any]]
    state: Optional[Dict[str, Any]]
    is_stopping: bool


class Run:
    def __init__(self, workdir: str, run_id: str) -> None:
        if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
            raise Refused("%r is no run id" % (run_id,))
        self.run_id = run_id
        # Joined by hand here and below: a sweep asks for hundreds, and os.path.join is a tenth of it.
        self.path = "%s/%s/%s" % (absolute(workdir), RUNS, run_id)
        self.lock = self.path + "/lock"
        self.log = "%s/%s" % (self.path, LOG)

    @property
    def mark(self) -> bytes:
        """The environment entry that every process of the run carries."""
        return os.fsencode("%s=%s" % (MARK, self.path))

    def attempt(self, number: int) -> Attempt:
        return Attempt(self, number)

    def attempts(self) -> List[int]:
        """The numbers of the attempts that have a folder, rising."""
        return recall(self.path + "/attempts", _numbers)

    def checkpoint(self) -> Optional[Dict[str, Any]]:
        """The newest checkpoint, which is a folder whose name ends in its step."""
        newest = None
        try:
            entries = list(os.scandir(self.path + "/checkpoints"))
        except FileNotFoundError:
            return None
        for entry in entries:
            found = _STEP.search(entry.name)
            if found and not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                newest = max(newest or (-1, ""), (int(found.group(1)), entry.path))
        if newest is None:
            return None
        try:
            age = time.time() - os.stat(newest[1]).st_mtime
        except FileNotFoundError:
            return None
        return {"path": newest[1], "step": newest[0], "age_s": age}


class Attempt:
    """One stretch of a run: `attempts/<number>/`."""

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.number = number
        self.path = "%s/attempts/%d" % (run.path, number)

    def file(self, name: str) -> str:
        return "%s/%s" % (self.path, name)

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        return read_json(self.file(name))

    def records(self) -> Records:
        return recall(self.path, _records)

    def heartbeat_age_s(self) -> Optional[float]:
        """Since its supervisor last showed that it lives."""
        try:
            return time.time() - os.stat(self.file("state.json")).st_mtime
        except FileNotFoundError:
            return None

    def write(self, name: str, value: Any) -> None:
        write_json(self.file(name), value)

    def reserve(self, name: str) -> None:
        """Take the blocks that `name` will need. Spaces, because zeros may become a hole, and JSON allows spaces."""
        _write(self.file(name + ".reserve"), b" " * RESERVE_BYTES)

    def fill(self, name: str, value: Any) -> None:
        """Write `name` into its reserved blocks; without a reserve, as any file."""
        reserve = self.file(name + ".reserve")
        try:
            fd = os.open(reserve, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self.write(name, value)
            return
        try:
            os.pwrite(fd, json.dumps(value).encode().ljust(RESERVE_BYTES), 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(reserve, self.file(name))


def _numbers(path: str) -> List[int]:
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def _records(path: str) -> Records:
    end = read_json(path + "/exit.json")
    return Records(end, None if end else read_json(path + "/state.json"), os.path.exists(path + "/stop.json"))


def absolute(path: str) -> str:
    if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
        raise Refused("%r is no absolute path" % (path,))
    return os.path.normpath(path)


def make_private(path: str) -> None:
    """The folder `path` with mode 0700, made if it was not there. What is there must be ours alone to write in."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    check_ours(path)


def check_ours(path: str) -> None:
    found = os.lstat(path)
    if os.path.islink(path) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Refused("%s is not ours alone to write in: remove it, or choose another workdir" % path)


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """The object in `path`; None if there is no such file. Refused if it holds something else."""
    try:
        value = json.loads(_read(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise Refused("%s is damaged: it holds no JSON" % path) from None
    if not isinstance(value, dict):
        raise Refused("%s is damaged: it holds no JSON object" % path)
    return value


def write_json(path: str, value: Any) -> None:
    part = "%s.part.%d" % (path, os.getpid())
    try:
        _write(part, json.dumps(value, indent=1).encode() + b"\n")
        os.rename(part, path)
    except OSError:
        remove(part)
        raise


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def take_lock(run: Run, attempt: Optional[Attempt] = None) -> Optional[int]:
    """The run's lock as a descriptor, or None if somebody holds it: a supervisor, for its whole life.

    Probes take the lock too, for microseconds, so this asks again for a while; not once `attempt` has started.
    """
    end = time.monotonic() + LOCK_PATIENCE_S
    while True:
        fd = os.open(run.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # A launch that failed removes its folder: a lock on the removed file would keep nobody out.
        if _flock(fd, fcntl.LOCK_EX) and os.path.exists(run.lock) and os.path.samestat(os.fstat(fd), os.stat(run.lock)):
            return fd
        os.close(fd)
        if time.monotonic() > end or (attempt and os.path.exists(attempt.file("state.json"))):
            return None
        time.sleep(0.02)


def is_locked(run: Run) -> bool:
    """Whether a supervisor lives. The kernel drops its lock whatever kills it, so this needs no pid and no clock."""
    try:
        fd = os.open(run.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _flock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as e:
        if e.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _read(path: str) -> bytes:
    # Most of what is asked for is not there, which `open` takes three times as long to say.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
    finally:
        os.close(fd)


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)

"""What /proc says: who lives and since when, which incarnation of the machine this is; and signals to those meant.

A process is its pid and its start time; a machine is its boot id and the start time of PID 1, because a container
shares the boot id with its host and keeps it when it is started again.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, List, NamedTuple, Optional, Set


class Process(NamedTuple):
    pid: int
    start: int


def incarnation() -> Dict[str, Any]:
    try:
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot_id: Optional[str] = f.read().strip()
    except OSError:
        boot_id = None
    init = find(1)
    return {"boot_id": boot_id, "pid1_start": init.start if init else None}


def find(pid: int) -> Optional[Process]:
    """The process that has this pid now."""
    fields = _stat(pid)
    return Process(pid, int(fields[_START])) if fields else None


def is_alive(process: Process) -> bool:
    fields = _stat(process.pid)
    return bool(fields) and int(fields[_START]) == process.start and fields[_STATE] not in _DEAD


def members(mark: bytes, leader: Optional[Process] = None, ancestor: Optional[int] = None) -> List[Process]:
    """Who belongs to a run: who carries `mark` in its environment, sits in the session of the living `leader`, or
    descends from `ancestor`.

    The mark outlives setsid and double forks; the other two catch programs that overwrite their environment's memory to
    set a title. This process itself is never among them.
    """
    table = _table()
    session = leader.pid if leader and is_alive(leader) else None
    family = _descendants(ancestor, table) if ancestor else set()
    found = []
    for pid, fields in table.items():
        if pid == os.getpid() or fields[_STATE] in _DEAD:
            continue
        if pid in family or int(fields[_SESSION]) == session or _has_mark(pid, mark):
            found.append(Process(pid, int(fields[_START])))
    return found


def pids() -> List[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent(pid: int) -> Optional[int]:
    fields = _stat(pid)
    return int(fields[_PARENT]) if fields else None


def descendants(ancestor: int) -> Set[int]:
    """The pids of all that descend from this process now."""
    return _descendants(ancestor, _table())


def environ(pid: int) -> List[bytes]:
    """What a process was started with; nothing of one that is not ours to see."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            return f.read().split(b"\0")
    except OSError:
        return []


def send(process: Process, number: int) -> None:
    """Signal `process` unless it is gone; a stranger that got its pid meanwhile is never hit where pidfds exist."""
    try:
        if not hasattr(os, "pidfd_open"):
            if is_alive(process):
                os.kill(process.pid, number)
            return
        fd = os.pidfd_open(process.pid)
        try:
            if is_alive(process):
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
    except ProcessLookupError:
        pass


def wake_on_signals() -> int:
    """A pipe that is readable after a signal. Handlers instead of SIG_IGN, which the training would inherit."""
    read_end, write_end = os.pipe()
    for fd in (read_end, write_end):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read_end


def adopt_strays() -> None:
    """Become the parent of grandchildren whose parent ends (PR_SET_CHILD_SUBREAPER), so that none escapes to init."""
    try:
        import ctypes
    except ImportError:  # A Python built without libffi: the mark in the environment still finds them.
        return
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def reap_strays(but: int = 0) -> None:
    """Take the exit status of children that have ended, except that of `but`, which somebody else waits for."""
    try:
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == but:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
    except ChildProcessError:
        return


def oom_kills() -> Optional[int]:
    """How often the kernel's out-of-memory killer has struck in our control groups; None if that cannot be known.

    The counter is the container's, not the run's: a rise makes an out-of-memory kill likely, not certain.
    """
    total = None
    for path in _oom_files():
        try:
            with open(path) as f:
                for line in f:
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        total = (total or 0) + int(value)
        except (OSError, ValueError):
            continue
    return total


# Fields of /proc/<pid>/stat counted from the third, the state.
_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19
_DEAD = (b"Z", b"X")


def _stat(pid: int) -> List[bytes]:
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            # The second field, the name, may itself hold blanks and brackets.
            return f.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _table() -> Dict[int, List[bytes]]:
    return {pid: fields for pid, fields in ((pid, _stat(pid)) for pid in pids()) if fields}


def _has_mark(pid: int, mark: bytes) -> bool:
    return mark in environ(pid)


def _descendants(ancestor: int, table: Dict[int, List[bytes]]) -> Set[int]:
    children: Dict[int, List[int]] = {}
    for pid, fields in table.items():
        children.setdefault(int(fields[_PARENT]), []).append(pid)
    found: Set[int] = set()
    todo = [ancestor]
    while todo:
        for pid in children.get(todo.pop(), []):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found


def _oom_files() -> List[str]:
    files = []
    try:
        with open("/proc/self/cgroup") as f:
            lines = f.read().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        # Our own leaf, then the root of what we see: a container's limit stands there.
        if not controllers:
            files += ["/sys/fs/cgroup%s/memory.events" % place for place in (path, "")]
        elif "memory" in controllers.split(","):
            files += ["/sys/fs/cgroup/memory%s/memory.oom_control" % place for place in (path, "")]
    return files

"""Who writes a file: the process that has it open, else one that speaks of it. Never found by its name alone."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import proc

# They hand on what another one prints: that one is meant.
_PIPES = (b"tee", b"ts", b"unbuffer", b"stdbuf")
# They start several workers and end with them: to end one of those would be of no use.
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "torch.distributed.run")
_INTERPRETERS = ("python", "torchrun", "accelerate", "deepspeed")
_MAX_ARGUMENTS = 200
# An interpreter's own options and the program stand among so many words; what follows is the program's.
_OPENING = 6


class Writer(NamedTuple):
    """`how`: it has the file "open", or it names it as an "argument", or it works in its folder ("cwd"): a guess.

    `others` are those that might be meant as well; then there is no `process`. `num_hidden` processes of other users
    could not be looked into.
    """

    process: Optional[proc.Process]
    how: Optional[str]
    others: List[int]
    num_hidden: int


def find_writer(path: str) -> Writer:
    """Whoever writes `path`, which is there."""
    found, num_hidden = _holding(os.stat(path), {os.getpid()})
    how = "open"
    if found:
        found = _behind_pipes(found)
    else:
        strangers = set(proc.pids()) - _lineage()
        for how in ("argument", "cwd"):
            found = {pid for pid in strangers if _speaks_of(pid, path, how)}
            if found:
                break
    roots = sorted(_roots({_launcher_of(pid) for pid in found}))
    process = proc.find(roots[0]) if len(roots) == 1 else None
    return Writer(process, how if process else None, [] if process else roots, num_hidden)


def described(process: proc.Process) -> Dict[str, Any]:
    """A process for people: its words, where it works, how old it is."""
    return {
        "pid": process.pid,
        "start": process.start,
        "argv": _argv(process.pid)[:_MAX_ARGUMENTS],
        "cwd": _link("/proc/%d/cwd" % process.pid),
        "age_s": age_s(process),
    }


def age_s(process: proc.Process) -> float:
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.start / os.sysconf("SC_CLK_TCK"))


def _holding(wanted: os.stat_result, but: Set[int]) -> Tuple[Set[int], int]:
    """Who has the file open for writing, and how many processes could not be asked."""
    found: Set[int] = set()
    num_hidden = 0
    for pid in proc.pids():
        if pid in but:
            continue
        try:
            for fd, there in _open_files(pid):
                if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino) and _is_for_writing(pid, fd):
                    found.add(pid)
        except PermissionError:
            num_hidden += 1
        except OSError:
            continue
    return found, num_hidden


def _open_files(pid: int) -> Iterator[Tuple[str, os.stat_result]]:
    folder = "/proc/%d/fd" % pid
    for fd in os.listdir(folder):
        try:
            yield fd, os.stat("%s/%s" % (folder, fd))
        except FileNotFoundError:
            continue


def _is_for_writing(pid: int, fd: str) -> bool:
    try:
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
            for line in f:
                name, _, value = line.partition(":")
                if name == "flags":
                    return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, ValueError):
        pass
    return False


def _behind_pipes(pids: Set[int]) -> Set[int]:
    """For each that only hands on, as `tee` does, whoever it reads from."""
    found: Set[int] = set()
    for pid in pids:
        sources: Set[int] = set()
        if os.path.basename(os.fsencode((_argv(pid) or [""])[0])) in _PIPES:
            try:
                sources, _ = _holding(os.stat("/proc/%d/fd/0" % pid), {pid, os.getpid()})
            except OSError:
                pass
        found |= sources or {pid}
    return found


def _speaks_of(pid: int, path: str, how: str) -> bool:
    """Whether an interpreter names the file or its folder, or works in that folder, and is none of ours."""
    argv = _argv(pid)
    if not argv or not os.path.basename(argv[0]).startswith(_INTERPRETERS) or _is_ours(argv):
        return False
    cwd, folder = _link("/proc/%d/cwd" % pid), os.path.dirname(path)
    if how == "cwd":
        return cwd == folder
    words = [word for arg in argv[1:] for word in (arg, arg.partition("=")[2]) if word]
    return any(os.path.normpath(os.path.join(cwd or "/", word)) in (path, folder) and word != "." for word in words)


def _lineage() -> Set[int]:
    """This process and those that it descends from: who asks is not who writes."""
    pid: Optional[int] = os.getpid()
    found: Set[int] = set()
    while pid and pid not in found:
        found.add(pid)
        pid = proc.parent(pid)
    return found


def _is_ours(argv: List[str]) -> bool:
    """Whether it is a command or a session of dflash-tui, or an agent of one; of a log they only ever read."""
    for word, after in zip(argv[:_OPENING], [*argv[1:], ""]):
        folder, name = os.path.split(word)
        if name == "dflash-tui" or os.path.basename(folder) in ("dflash_tui", "dflash-agent"):
            return True
        if word == "-m":
            return after.partition(".")[0] == "dflash_tui"
    return False


def _launcher_of(pid: int) -> int:
    """The launcher that a worker belongs to, else the worker."""
    parent = proc.parent(pid)
    while parent and any(os.path.basename(word) in _LAUNCHERS for word in _argv(parent)[:4]):
        pid, parent = parent, proc.parent(parent)
    return pid


def _roots(pids: Set[int]) -> Set[int]:
    """Those of `pids` that descend from no other one."""
    return {pid for pid in pids if not any(pid in proc.descendants(other) for other in pids if other != pid)}


def _argv(pid: int) -> List[str]:
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return [os.fsdecode(word) for word in f.read(1 << 16).split(b"\0")[:-1]]
    except OSError:
        return []


def _link(path: str) -> Optional[str]:
    try:
        return os.readlink(path)
    except OSError:
        return None

"""What was read before and need not be read again: what a file or a folder holds, as long as its stat is the same.

A stat tells less than a look. Two changes within one tick of a file system's clock leave the same times, so nothing is
remembered of what has changed just now; and what another machine writes may be told late, so nothing is remembered of
what is not on a disk of this one. Whoever remembers gives what was given before, or looks.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Optional, Set, Tuple, TypeVar

from .mounts import is_local

# An old ext3 has the longest tick, of a second; and the time that a kernel stamps with lags behind its clock by some
# milliseconds.
SETTLED_NS = 2_000_000_000
# More than any sweep asks for; beyond it, all is looked at once more.
MAX_HELD = 1 << 16

# Device, inode, size, time of the content and time of the entry. Nothing that was changed keeps all of them: a file
# whose old time was put back has a new entry.
Stamp = Tuple[int, int, int, int, int]
T = TypeVar("T")

_held: Dict[str, Tuple[Stamp, Any]] = {}
# The numbers of devices that were not local. One that was is asked for again: its number may be another's by now.
_foreign: Set[int] = set()


def look(path: str) -> Optional[Stamp]:
    """The stamp of what `path` is now; None if nothing can be known by it: of what was changed just now, or says that
    it will be."""
    now_ns = time.time_ns()
    try:
        found = os.stat(path)
    except OSError:
        return None
    if now_ns - max(found.st_mtime_ns, found.st_ctime_ns) <= SETTLED_NS:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def held(path: str, stamp: Optional[Stamp]) -> Any:
    """What was kept of `path` under this stamp; None if nothing was."""
    before = _held.get(path)
    return before[1] if before and before[0] == stamp else None


def keep(path: str, stamp: Optional[Stamp], value: Any) -> None:
    """`value`, which was read of `path` after it had this stamp, if that is to be trusted."""
    if stamp is None or not _is_on_local(path, stamp[0]):
        _held.pop(path, None)
        return
    if len(_held) >= MAX_HELD:
        _held.clear()
    _held[path] = (stamp, value)


def recall(path: str, read: Callable[[str], T]) -> T:
    """`read(path)`, which tells what that file or folder holds; or, if it is still the same, what it told then."""
    stamp = look(path)
    known = held(path, stamp)
    if known is None:
        known = read(path)
        keep(path, stamp, known)
    return known  # type: ignore[no-any-return]


def _is_on_local(path: str, device: int) -> bool:
    if device in _foreign:
        return False
    if not is_local(path):
        _foreign.add(device)
        return False
    return True

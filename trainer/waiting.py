"""How threads of torch wait for each other, which must be said before torch is imported. Standard library only.

By default they spin, between two operations of a step too. On two cores that are free, that makes a step 1.6 to 1.9
times as fast as threads that sleep; where another process wants one of the cores, 3 to 5 times slower, since who spins
takes the time of who works. So it follows from what the machine does when a run begins.
"""

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
# What others may use of the cores, in cores, where threads spin.
_OTHERS = 0.5
# A session that has just started the run draws its first screens meanwhile.
_LOOKS, _LOOK_S = 6, 0.2


def choose_waiting() -> None:
    """Sets OMP_WAIT_POLICY for this process, unless somebody has said how threads wait."""
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return
    if not any(_busy_cores() < _OTHERS for _ in range(_LOOKS)):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def _busy_cores() -> float:
    """How many cores were busy in the time of one look, this sleeping process not counted; all where nobody tells."""
    before = _jiffies()
    time.sleep(_LOOK_S)
    passed = [after - then for then, after in zip(before, _jiffies(), strict=True)]
    idle, total = sum(passed[3:5]), sum(passed)
    return (os.cpu_count() or 1) * (1 - idle / total) if total else float("inf")


def _jiffies() -> list[int]:
    """Of all cores since the start: user, nice, system, idle, waiting for a disk, interrupts (two), stolen."""
    try:
        return [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return []

"""A program in a terminal of its own: how long until words are on it, how much memory it holds.

A bare pseudo-terminal: nothing between the program and the clock. What it wrote is read as text, escapes left out.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.rows import environment

_PATIENCE_S = 60.0
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[P\]_].*?(?:\x1b\\|\x07)|\x1b.", re.S)


class Terminal:
    """The program `pid` behind the descriptor `fd`, begun at `begun`."""

    def __init__(self, pid: int, fd: int, begun: float) -> None:
        self.pid, self._fd, self._begun = pid, fd, begun
        self._seen = b""

    def wait_for(self, words: str) -> float:
        """Seconds from its start until `words` were written, or since the last `press`."""
        wanted = words.encode()
        while wanted not in _ESCAPES.sub(b"", self._seen):
            left = self._begun + _PATIENCE_S - time.perf_counter()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                raise TimeoutError(f"never on the terminal: {words!r}; it ends with {self._seen[-400:]!r}")
            self._seen += os.read(self._fd, 1 << 16)
        return time.perf_counter() - self._begun

    def press(self, keys: bytes) -> None:
        self._seen, self._begun = b"", time.perf_counter()
        os.write(self._fd, keys)

    def watch(self, seconds: float) -> None:
        """Let it go on, taking what it writes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left)[0]:
                self._seen += os.read(self._fd, 1 << 16)

    def memory_mb(self, key: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        [kb] = re.findall(rf"{key}:\s+(\d+) kB", status)
        return int(kb) / 1024


@contextmanager
def terminal(argv: Sequence[str | Path], home: Path, size: tuple[int, int] = (120, 40)) -> Iterator[Terminal]:
    """`argv` in a new terminal of `size`; it is ended when the block is left. `home` is where its store lies."""
    env = {**environment(home), "TERM": "xterm-256color"}
    begun = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(argv[0], [str(word) for word in argv], env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    try:
        yield Terminal(pid, fd, begun)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)

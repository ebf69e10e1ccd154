"""Who owns the store: an flock on a file of its own, held for the owner's lifetime. The file names its holder.

DuckDB's own lock would not do: it is a POSIX lock, which any close of the same file drops.
"""

import fcntl
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from dflash_tui import paths
from dflash_tui.errors import StoreBusyError
from dflash_tui.text import visible

# With the start of the interpreter, a person is told within 3 s who holds the store.
BUSY_AFTER_S = 2.0
RETRY_S = 0.05


class StoreLock:
    """The held lock. `release` it, or end the process in whatever way."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def try_take(cls) -> Self | None:
        """The lock, or None while somebody else has it."""
        paths.private_dir(paths.data_dir())
        descriptor = os.open(paths.lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]).replace("\n", " ")
        # The name is a courtesy: a full disk takes it away, not the lock.
        with suppress(OSError):
            os.pwrite(descriptor, f"{os.getpid()} {command}\n".encode(errors="replace"), 0)
        return cls(descriptor)

    @classmethod
    @contextmanager
    def held(cls) -> Iterator[None]:
        """The lock while the `with` lasts; StoreBusyError within 3 s when somebody else has it."""
        deadline = time.monotonic() + BUSY_AFTER_S
        while (lock := cls.try_take()) is None:
            if time.monotonic() > deadline:
                raise StoreBusyError(f"the store is held by {holder()}: this needs it alone; end that first")
            time.sleep(RETRY_S)
        try:
            yield
        finally:
            lock.release()

    @staticmethod
    def is_taken() -> bool:
        """Whether somebody is owner, or is about to be."""
        try:
            descriptor = os.open(paths.lock_file(), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def release(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def holder() -> str:
    """The holder as a person reads it: "PID 4711 (dflash-tui watch)"; only meaningful while the lock is taken."""
    try:
        text = paths.lock_file().read_text(errors="replace")[:300].strip()
    except FileNotFoundError:
        text = ""
    named = re.match(r"(\d+) (.*)", text)
    return f"PID {named[1]} ({visible(named[2])})" if named else "another process"

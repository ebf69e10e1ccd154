"""A private folder for a copy of the database, gone when its user is: left in peace, by Ctrl-C, or killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dflash_tui import paths

_PREFIX = "snapshot-"
_LOCK = "lock"


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder (0700) beside the database, where a copy costs least; removed with all that is in it."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=paths.private_dir(paths.data_dir())))
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(lock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """What a killed process left: nobody holds its lock."""
    for folder in paths.data_dir().glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            # Not locked yet, or not ours.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)

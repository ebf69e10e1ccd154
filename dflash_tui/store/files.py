"""The files that the database consists of, and how one is put in another's place: for the holder of the lock alone.

dflash.duckdb           the database, with DuckDB's logs beside it while it is open or after a crash
dflash.new.duckdb       one that a rebuild or a compact is making; what a killed one left is removed by the next owner
dflash.broken-1.duckdb  one that did not open, kept for who wants to look at it
"""

import os
import shutil
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import DflashError

# A log, and the two that stand beside it while DuckDB writes it into the file.
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
_SPILL = ".tmp"


def fresh_file() -> Path:
    """Where a new database is made. Nothing lies there any more."""
    place = paths.database_file()
    fresh = place.with_name(f"{place.stem}.new{place.suffix}")
    remove(fresh)
    return fresh


def remove(file: Path) -> None:
    """The database in `file`, with all that DuckDB put beside it."""
    for part in (file, *log_files(file)):
        part.unlink(missing_ok=True)
    shutil.rmtree(spill_folder(file), ignore_errors=True)


def log_files(file: Path) -> list[Path]:
    """The logs of the database in `file` that are there."""
    places = [file.with_name(file.name + end) for end in _LOGS]
    return [place for place in places if place.exists()]


def spill_folder(file: Path) -> Path:
    """Where a query over the database in `file` puts what does not fit in memory."""
    return file.with_name(file.name + _SPILL)


def size(file: Path) -> int:
    """Bytes of the database in `file`, its logs included."""
    return sum(part.stat().st_size for part in (file, *log_files(file)))


def set_aside(file: Path) -> Path:
    """Give the database another name, which is returned. Its logs go first: a file without them opens, they without
    it would be lost."""
    aside = next(
        place
        for n in range(1, 10_000)
        if not (place := file.with_name(f"{file.stem}.broken-{n}{file.suffix}")).exists()
    )
    for log in log_files(file):
        log.rename(aside.with_name(aside.name + log.name.removeprefix(file.name)))
    file.rename(aside)
    return aside


def put_in_place(fresh: Path) -> None:
    """Make the closed database `fresh` the store's, in one step: whoever is killed at any moment leaves a whole one."""
    place = paths.database_file()
    if log_files(fresh):
        raise DflashError(f"{fresh}: could not be closed as a whole; make room there and try again")
    _sync(fresh)
    # The old one's logs belong to it alone. Without them it is as it was a while ago, and catches up.
    for log in log_files(place):
        log.unlink()
    fresh.replace(place)
    _sync(place.parent)


def _sync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The files that the database consists of, and how one is put in another's place: for the holder of the lock alone.

`dflash.duckdb` is the database, with DuckDB's logs beside it while it is open or after a crash; `dflash.new.duckdb` one
that is being made, and what a killed process left of it goes away with the next owner; `dflash.broken-1.duckdb` one
that did not open, of which the newest are kept for who wants to look at them.
"""

import os
import re
import shutil
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import DflashError

# A log, and the two that stand beside it while DuckDB writes it into the file.
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
_SPILL = ".tmp"
_NUM_ASIDE = 3


def fresh_place() -> Path:
    """Where a new database is made."""
    place = paths.database_file()
    return place.with_name(f"{place.stem}.new{place.suffix}")


def fresh_file() -> Path:
    """The same, with nothing there any more."""
    fresh = fresh_place()
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
    before = those_aside(file)
    aside = file.with_name(f"{file.stem}.broken-{max(before, default=0) + 1}{file.suffix}")
    for log in log_files(file):
        log.rename(aside.with_name(aside.name + log.name.removeprefix(file.name)))
    file.rename(aside)
    # A disk that spoils one after another must not be filled with them.
    for number in sorted(before)[: 1 - _NUM_ASIDE]:
        remove(before[number])
    return aside


def those_aside(file: Path) -> dict[int, Path]:
    """The databases that once were `file` and did not open, by their numbers."""
    name = re.compile(re.escape(file.stem) + r"\.broken-([1-9][0-9]{0,8})" + re.escape(file.suffix))
    found = [(name.fullmatch(place.name), place) for place in file.parent.iterdir()]
    return {int(match[1]): place for match, place in found if match}


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

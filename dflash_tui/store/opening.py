"""Opening the database for writing: made if missing, set aside and made anew if broken, brought up to its mirrors.

Who calls this holds the StoreLock.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database, SchemaVersionError
from dflash_tui.store.guard import query_error

Notice = Callable[[str], None]

BUSY_AFTER_S = 2.0
_RETRY_S = 0.05
_LOCKED = re.compile(r"lock on file")
_HOLDER = re.compile(r"held in (?P<command>.*?) ?\(PID (?P<pid>\d+)\)")
# The machine's troubles, which a new database would meet as well.
_NOT_BROKEN = re.compile(
    r"permission denied|no space left|read-only file system|too many open files|is a directory", re.I
)


def busy_error(error: duckdb.Error) -> StoreBusyError | None:
    """DuckDB's complaint about another process as an error that names it; None when it complains of something else."""
    text = str(query_error(error))
    if not _LOCKED.search(text):
        return None
    found = _HOLDER.search(text)
    by = f"PID {found['pid']} ({found['command']})" if found else "another process"
    return StoreBusyError(f"{paths.database_file()}: is held by {by}; end it, or try again when it is done")


def open_for_writing(notice: Notice, options: StoreOptions) -> Database:
    """The store of this machine. `notice` is told in one sentence what was repaired. StoreBusyError after 2 s when a
    process that knows nothing of our lock holds the file."""
    path = paths.database_file()
    deadline = time.monotonic() + BUSY_AFTER_S
    while True:
        try:
            database = Database(path, options)
            break
        except (duckdb.Error, SchemaVersionError) as e:
            if isinstance(e, duckdb.Error) and (busy := busy_error(e)):
                if time.monotonic() > deadline:
                    raise busy from e
                time.sleep(_RETRY_S)
                continue
            _set_aside(path, e, notice)
    try:
        _catch_up(database, notice)
    except BaseException:
        database.close()
        raise
    return database


def _set_aside(path: Path, error: Exception, notice: Notice) -> None:
    why = str(query_error(error)) if isinstance(error, duckdb.Error) else str(error)
    if _NOT_BROKEN.search(why) or not path.exists():
        raise DflashError(f"{path}: cannot be opened ({why})") from error
    aside = next(
        place
        for n in range(1, 10_000)
        if not (place := path.with_name(f"{path.stem}.broken-{n}{path.suffix}")).exists()
    )
    path.rename(aside)
    log = path.with_name(f"{path.name}.wal")
    if log.exists():
        log.rename(aside.with_name(f"{aside.name}.wal"))
    notice(f"the database did not open and was set aside as {aside.name}; it is made anew from the mirrors ({why})")


def _catch_up(database: Database, notice: Notice) -> None:
    """What the mirrors know and the tables do not: all of a new database, or what a crash kept from being noted."""
    stale = database.stale_runs()
    num_rows = 0
    for run_id in stale:
        try:
            num_rows += database.restore(run_id).rows
        except DflashError as e:
            notice(f"run {run_id} was left out: {e}")
    if database.is_new and stale:
        notice(f"the database was made from the mirrors of {len(stale)} runs ({num_rows:,} rows)")

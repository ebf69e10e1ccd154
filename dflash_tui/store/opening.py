"""Opening the database for writing: made if missing, set aside and made anew if broken, brought up to its mirrors.

Who calls this holds the StoreLock.
"""

import re
import shutil
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError
from dflash_tui.store import files
from dflash_tui.store.base import Progress, StoreOptions, no_progress
from dflash_tui.store.database import Database, SchemaVersionError
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import REBUILD, query_error
from dflash_tui.store.lock import BUSY_AFTER_S, RETRY_S
from dflash_tui.store.mirror import mirrored_runs
from dflash_tui.text import numbered

Notice = Callable[[str], None]

_LOCKED = re.compile(r"lock on file")
_HOLDER = re.compile(r"held in (?P<command>.*?) ?\(PID (?P<pid>\d+)\)")
# The machine's troubles, which a new database would meet as well.
_NOT_BROKEN = re.compile(
    r"permission denied|no space left|read-only file system|too many open files|is a directory|out of memory"
    r"|input/output error",
    re.I,
)
# DuckDB's errors as JSON lose their class and keep its name. A file that was cut is no "corruption" to it.
_DAMAGE = re.compile(
    r'"exception_type": ?"(Data Corruption|FATAL|INTERNAL|Serialization)"|^(FATAL|INTERNAL)|not read enough bytes'
)


def busy_error(error: duckdb.Error) -> StoreBusyError | None:
    """DuckDB's complaint about another process as an error that names it; None when it complains of something else."""
    text = str(query_error(error))
    if not _LOCKED.search(text):
        return None
    found = _HOLDER.search(text)
    by = f"PID {found['pid']} ({found['command']})" if found else "another process"
    return StoreBusyError(f"{paths.database_file()}: is held by {by}; end it, or try again when it is done")


def open_for_writing(notice: Notice, options: StoreOptions, progress: Progress = no_progress) -> Database:
    """The store of this machine. `notice` is told in one sentence what was repaired. StoreBusyError after 2 s when a
    process that knows nothing of our lock holds the file. What `progress` raises ends a catching up."""
    path = paths.database_file()
    # What a killed rebuild or compact left goes away.
    fresh = files.fresh_file()
    if path.exists() and path.stat().st_size:
        try:
            return _open(path, notice, options, progress)
        except (duckdb.Error, SchemaVersionError) as e:
            _set_aside(path, e, notice)
    try:
        if mirrored_runs():
            # Beside its place: half of one would be read by who only reads.
            with closing(_open(fresh, notice, options, progress)):
                pass
            files.put_in_place(fresh)
        return _open(path, _say_nothing, options, progress)
    except duckdb.Error as e:
        raise DflashError(f"{path}: cannot be made anew ({query_error(e)})") from e
    finally:
        files.remove(fresh)


def _say_nothing(sentence: str) -> None:
    """What is wrong was said before."""


def _open(path: Path, notice: Notice, options: StoreOptions, progress: Progress) -> Database:
    """duckdb.Error or SchemaVersionError when it does not open, or not even the small tables can be read."""
    deadline = time.monotonic() + BUSY_AFTER_S
    while True:
        try:
            database = Database(path, options)
            break
        except duckdb.Error as e:
            if not (busy := busy_error(e)):
                raise
            if time.monotonic() > deadline:
                raise busy from e
        time.sleep(RETRY_S)
    # What queries of a killed process had no room for in memory; of a living one there is nothing while we write.
    shutil.rmtree(files.spill_folder(path), ignore_errors=True)
    try:
        _catch_up(database, notice, progress)
    except BaseException as e:
        # One that a damaged block has made unusable cannot be closed either.
        with suppress(duckdb.Error):
            database.close()
        if isinstance(e.__cause__, duckdb.Error) and is_damage(e.__cause__):
            raise e.__cause__ from None
        raise
    return database


def is_damage(error: BaseException | None) -> bool:
    """Whether DuckDB complains of the file's content, as against the statement or the machine."""
    return isinstance(error, duckdb.Error) and bool(_DAMAGE.search(str(error)))


def _set_aside(path: Path, error: Exception, notice: Notice) -> None:
    why = str(query_error(error)).removesuffix(REBUILD) if isinstance(error, duckdb.Error) else str(error)
    if _NOT_BROKEN.search(why) or not path.exists():
        raise DflashError(f"{path}: cannot be opened ({why})") from error
    aside = files.set_aside(path)
    notice(f"the database did not open and was set aside as {aside.name}; it is made anew from the mirrors ({why})")


def _catch_up(database: Database, notice: Notice, progress: Progress) -> None:
    """What the mirrors know and the tables do not: all of a new database, or what a crash kept from being noted."""
    stale = database.stale_runs()
    num_rows = 0
    for run_id in stale:
        try:
            num_rows += database.restore(run_id, progress).rows
        except DflashError as e:
            if is_damage(e.__cause__):
                raise
            notice(f"run {run_id} was left out: {e}")
    if database.is_new and stale:
        size = numbered(num_rows, "row")
        notice(f"the database was made from the mirrors of {numbered(len(stale), 'run')} ({size})")

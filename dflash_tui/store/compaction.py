"""Making the database anew, beside the old one: from itself, without its holes, or from the mirrors.

Nobody else owns the store meanwhile. The old file stays until the new one is complete, closed and on the disk; a kill
at any moment leaves one of the two.
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.store import files
from dflash_tui.store.base import IngestProgress, Progress, StoreOptions, no_progress
from dflash_tui.store.database import Database
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import query_error
from dflash_tui.store.interrupts import apart
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, mirrored_runs
from dflash_tui.store.opening import Notice, open_for_writing

_MEMORY = "1GB"
_ORDER = " order by run, generation, line_no"


def compact(notice: Notice, options: StoreOptions) -> tuple[int, int]:
    """Write the database without its holes, each run's rows together. Returns its bytes before and after.

    StoreBusyError when somebody owns the store; DflashError when there is no room for a second one. Ctrl-C leaves the
    old one.
    """
    tell, is_over = _until_over(no_progress)
    with duckdb.connect(":memory:", config={"memory_limit": _MEMORY, "errors_as_json": "true"}) as db:

        def stop() -> None:
            is_over.set()
            db.interrupt()

        return apart(partial(_compact, db, partial(open_for_writing, notice, options, tell)), stop)


def _compact(db: duckdb.DuckDBPyConnection, open_old: Callable[[], Database]) -> tuple[int, int]:
    place = paths.database_file()
    with StoreLock.held():
        if not place.exists() and not mirrored_runs():
            raise UsageError("there is no store yet: `dflash-tui demo`, `launch` or `ingest` makes one")
        # Whatever a crash left is put right first, and the log goes into the file.
        open_old().close()
        if files.log_files(place):
            raise DflashError(f"{place}: its log cannot be written into it; make room there and try again")
        before = place.stat().st_size
        _need_room(before)
        with _fresh_file() as fresh:
            try:
                _copy(db, place, fresh)
            finally:
                for name in ("fresh", "old"):
                    db.execute(f"detach database if exists {name}")
            files.put_in_place(fresh)
        return before, place.stat().st_size


def rebuild(options: StoreOptions, progress: Progress = no_progress) -> tuple[int, int]:
    """Make the database from the mirrors alone. Returns the number of runs and of rows.

    StoreBusyError when somebody owns the store; DflashError, and the old database stays, when a mirror cannot be read.
    Ctrl-C leaves the old one.
    """
    tell, is_over = _until_over(progress)
    return apart(partial(_rebuild, options, tell), is_over.set)


class _Interrupted(Exception):
    """The new database is no longer wanted."""


def _until_over(progress: Progress) -> tuple[Progress, threading.Event]:
    """`progress`, which ends what it is told of once the event is set."""
    is_over = threading.Event()

    def tell(told: IngestProgress) -> None:
        if is_over.is_set():
            raise _Interrupted
        progress(told)

    return tell, is_over


def _rebuild(options: StoreOptions, progress: Progress) -> tuple[int, int]:
    with StoreLock.held(), _fresh_file() as fresh:
        sizes = {run_id: _mirror_bytes(Mirror(run_id)) for run_id in mirrored_runs()}
        num_rows = bytes_done = 0

        def tell(of_run: IngestProgress) -> None:
            rows, done = num_rows + of_run.rows, bytes_done + of_run.bytes_done
            progress(IngestProgress(rows, done, sum(sizes.values())))

        with Database(fresh, options) as database:
            for run_id, num_bytes in sizes.items():
                try:
                    num_rows += database.restore(run_id, tell).rows
                except DflashError as e:
                    raise DflashError(
                        f"run {run_id} cannot be read back ({e}); nothing was changed: mend or move"
                        f" {Mirror(run_id).folder}, then rebuild"
                    ) from e
                bytes_done += num_bytes
        files.put_in_place(fresh)
        return len(sizes), num_rows


@contextmanager
def _fresh_file() -> Iterator[Path]:
    """Where the new database is made; gone afterwards, unless it was put in place."""
    fresh = files.fresh_file()
    try:
        yield fresh
    except duckdb.Error as e:
        raise DflashError(f"{fresh}: {query_error(e)}; the old database stays as it was") from e
    finally:
        files.remove(fresh)


def _need_room(num_bytes: int) -> None:
    free = shutil.disk_usage(paths.data_dir()).free
    if free < num_bytes:
        raise DflashError(
            f"{paths.data_dir()}: a second database needs {num_bytes / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free;"
            " make room there and try again"
        )


def _copy(db: duckdb.DuckDBPyConnection, old: Path, fresh: Path) -> None:
    """All of `old` into `fresh`, and counted. Through `db`, another database: the store's may read no other file."""
    db.execute(f"set temp_directory = {_quoted(str(files.spill_folder(fresh)))}")
    db.execute(f"attach {_quoted(str(old))} as old (read_only)")
    db.execute(f"attach {_quoted(str(fresh))} as fresh")
    db.execute("copy from database old to fresh (schema)")
    for table in _tables(db):
        columns = db.execute(
            "select column_name from duckdb_columns() where database_name = 'old' and table_name = $1", [table]
        ).fetchall()
        # Runs that were followed side by side lie mixed: a panel of one would read through all of them.
        is_of_lines = {("run",), ("line_no",)} <= {*columns}
        order = _ORDER if is_of_lines else ""
        db.execute(f"insert into fresh.{table} select * from old.{table}{order}")  # noqa: S608 - names of our own
        [(there,)] = db.execute(f"select count(*) from old.{table}").fetchall()  # noqa: S608
        [(here,)] = db.execute(f"select count(*) from fresh.{table}").fetchall()  # noqa: S608
        if here != there:
            raise DflashError(f"{fresh}: has {here:,} of {there:,} rows of {table}; the old database stays")
    db.execute("checkpoint fresh")


def _tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    found = db.execute("select table_name from duckdb_tables() where database_name = 'old' and not internal").fetchall()
    return [name for (name,) in found]


def _mirror_bytes(mirror: Mirror) -> int:
    generations = [number for number, _ in mirror.older(TRAIN_LOG)]
    return sum(mirror.size(TRAIN_LOG, number) for number in (*generations, None))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

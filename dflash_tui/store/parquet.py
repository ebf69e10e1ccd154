"""A query's answer as a Parquet file, its types the query's own: written by DuckDB in this process.

The owner's database may write no file, so its owner makes a copy of it and this process asks that; without an owner it
asks the file itself. Either is opened so that one file can be written, and nothing else read or written.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dflash_tui import paths
from dflash_tui.store import schema
from dflash_tui.store.access import reader
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.client import StoreClient
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import LOCKED_DOWN, query_error
from dflash_tui.store.interrupts import ctrl_c_cancels, interruptible
from dflash_tui.store.opening import busy_error
from dflash_tui.store.queries import RunningQuery
from dflash_tui.store.snapshots import private_folder

_TRIES = 3
# These come last: with them, no file can be allowed any more.
_LAST = ("enable_external_access", "lock_configuration")


class Written(NamedTuple):
    """How many rows, whether there are more than the limit, and who had them: "owner" or "direct"."""

    num_rows: int
    is_cut: bool
    by: str


def write_parquet(
    sql: str,
    params: dict[str, Any],
    timeout_s: float | None,
    file: Path,
    limit: int | None,
    notice: Callable[[str], None],
    options: StoreOptions,
    began: Callable[[RunningQuery], None] = lambda query: None,
) -> Written:
    """The answer to one read-only statement into `file`; `began` hears of what can be cancelled. Errors as of
    `Store.query`."""
    started = time.monotonic()
    with interruptible(), private_folder() as folder:
        for n in range(_TRIES):
            with reader(notice, options) as store:
                by = "owner" if isinstance(store, StoreClient) else "direct"
                place = folder / "store.duckdb" if by == "owner" else paths.database_file()
                if by == "owner":
                    store.snapshot(place)
            try:
                db = _open(place, file)
                break
            except duckdb.Error as e:
                # Somebody became owner just now.
                if not (busy := busy_error(e)) or n == _TRIES - 1:
                    raise busy or query_error(e) from e
        query = RunningQuery(db, schema.names())
        began(query)
        with ctrl_c_cancels(query.cancel):
            num, is_cut = query.write_parquet(sql, params, timeout_s, file, limit, since=started)
        return Written(num, is_cut, by)


def _open(place: Path, file: Path) -> duckdb.DuckDBPyConnection:
    first = {name: value for name, value in LOCKED_DOWN.items() if name not in _LAST}
    db = duckdb.connect(place, read_only=True, config=first)
    try:
        db.execute("set allowed_paths = ['{}']".format(str(file).replace("'", "''")))
        for name in _LAST:
            db.execute(f"set {name} = {LOCKED_DOWN[name]}")
    except BaseException:
        db.close()
        raise
    return db

"""A query of the file itself, by a process that does nothing else and when nothing is in its way.

Everything out of the ordinary (an owner that comes or goes, a file that is missing, broken or of another version) is
the business of access.py: opening all that a Store can do takes this process 30 ms more.
"""

from dflash_tui import paths
from dflash_tui.store import schema
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import LOCKED_DOWN
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.queries import RunningQuery


def open_to_ask(*, is_alone: bool = True) -> RunningQuery | None:
    """The file opened for one query; None when it does not open just so. `is_alone` leaves it to who is about to own
    it."""
    path = paths.database_file()
    if (is_alone and StoreLock.is_taken()) or not path.exists():
        return None
    try:
        db = duckdb.connect(path, read_only=True, config=LOCKED_DOWN)
    except duckdb.Error:
        return None
    try:
        is_ours = db.execute("select version from store").fetchall() == [(schema.version(),)]
    except duckdb.Error:
        is_ours = False
    if not is_ours:
        db.close()
        return None
    # It closes what it was given with its answer: here that is the database.
    return RunningQuery(db, schema.names())

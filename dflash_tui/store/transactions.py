"""A transaction that ends either way, and lets the error through that ended it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dflash_tui.store.engine import duckdb


@contextmanager
def transaction(db: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Committed when the `with` is left, rolled back by an error. The body may commit and begin again in between."""
    db.execute("begin")
    try:
        yield db
        db.execute("commit")
    except BaseException:
        # A commit that failed, on a full disk say, has ended the transaction already.
        with suppress(duckdb.TransactionException):
            db.execute("rollback")
        raise

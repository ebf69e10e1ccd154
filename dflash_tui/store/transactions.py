"""A transaction that ends either way, and lets the error through that ended it; Ctrl-C as what it is."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb


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


@contextmanager
def interruptible() -> Iterator[None]:
    """DuckDB swallows a Ctrl-C in its main thread and raises a RuntimeError of its own: make it one again."""
    try:
        yield
    except RuntimeError as e:
        if str(e) == "Query interrupted":
            raise KeyboardInterrupt from e
        raise

"""A person's query while it runs: checked, bound, read only, limited in time, cancellable from another thread."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from dflash_tui.errors import QueryError, TimedOutError
from dflash_tui.store.answer import Answer, Row
from dflash_tui.store.cells import odd_columns, plain_rows
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import Checked, check, placed, query_error
from dflash_tui.store.interrupts import interruptible
from dflash_tui.store.lossless import (
    Wrapped,
    begun,
    beyond,
    columns_of,
    from_json,
    nested,
    to_parquet,
    with_times_as_text,
)
from dflash_tui.text import did_you_mean

BATCH_ROWS = 2048
_INTERRUPT_EVERY_S = 0.1
T = TypeVar("T")


class RunningQuery:
    """One query on a cursor of its own. `start` and the answer's reader belong to one thread, `cancel` to any."""

    def __init__(self, db: duckdb.DuckDBPyConnection, tables: Collection[str]) -> None:
        self._db = db
        self._tables = tables
        self._is_cancelled = False
        self._is_late = False
        self.is_open = True
        self._timeout_s = 0.0
        self._timer: threading.Timer | None = None
        self._turn = threading.RLock()
        self._before = 0

    def start(self, sql: str, params: dict[str, Any] | None, timeout_s: float | None) -> Answer:
        """QueryError for what is wrong or not allowed; TimedOutError when `timeout_s` is over before the last row."""
        try:
            return self._checked(sql, params, timeout_s, self._begin)
        except BaseException:
            self.close()
            raise

    def write_parquet(
        self,
        sql: str,
        params: dict[str, Any] | None,
        timeout_s: float | None,
        file: Path,
        limit: int | None,
        since: float,
    ) -> tuple[int, bool]:
        """The answer into `file`, up to `limit` rows: how many there were, and whether there are more. Errors as of
        `start`; the time runs since `since` (monotonic). The database was opened so that it may write there alone."""
        try:
            return self._checked(sql, params, timeout_s, lambda sql, bound: self._copy(sql, bound, file, limit), since)
        finally:
            self.close()

    def _checked(
        self,
        sql: str,
        params: dict[str, Any] | None,
        timeout_s: float | None,
        work: Callable[[str, dict[str, Any]], T],
        since: float | None = None,
    ) -> T:
        sql = begun(sql)
        with self._turn:
            self._limit_time(timeout_s, since)
            # Looking at the statement asks the engine too, and is cancelled like the rest.
            with self._one_line_errors(sql):
                checked = check(self._db, sql, self._tables)
                return work(sql, _bind(checked, params or {}))

    def _limit_time(self, timeout_s: float | None, since: float | None) -> None:
        if timeout_s is None:
            return
        self._timeout_s = timeout_s
        gone_s = 0.0 if since is None else time.monotonic() - since
        self._timer = threading.Timer(max(0.0, timeout_s - gone_s), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stop it now; its reader meets a QueryError. Harmless before and after."""
        self._is_cancelled = True
        self._interrupt()

    def close(self) -> None:
        """Give the cursor back, after cancelling what still runs in another thread."""
        # An interrupt between two steps of the engine is lost, so it is repeated until the other thread lets go.
        while not self._turn.acquire(timeout=_INTERRUPT_EVERY_S if self._is_cancelled else 0):
            self.cancel()
        try:
            if self._timer:
                self._timer.cancel()
            if self.is_open:
                self.is_open = False
                self._db.close()
        finally:
            self._turn.release()

    def _expire(self) -> None:
        self._is_late = True
        self._interrupt()
        # One that comes between two steps of the engine is lost: again, until the query is closed.
        while self._timer and not self._timer.finished.wait(_INTERRUPT_EVERY_S):
            self._interrupt()

    def _interrupt(self) -> None:
        # Closed meanwhile: there is nothing left to stop.
        with suppress(duckdb.ConnectionException):
            self._db.interrupt()

    def _begin(self, sql: str, bound: dict[str, Any]) -> Answer:
        columns = self._described(sql, bound)
        kinds = [kind for _, kind in columns]
        self._execute(with_times_as_text(sql, kinds), bound)
        if not columns:
            columns = [(column[0], str(column[1])) for column in self._db.description or []]
            kinds = [kind for _, kind in columns]
        return Answer([name for name, _ in columns], kinds, self._batches(sql, kinds), self.close)

    def _copy(self, sql: str, bound: dict[str, Any], file: Path, limit: int | None) -> tuple[int, bool]:
        columns = self._described(sql, bound)
        if not columns:
            # It says what is wrong, or it is an EXPLAIN.
            self._execute(Wrapped(sql, 0), bound)
            raise QueryError("only a SELECT can be written as parquet")
        self._execute(to_parquet(sql, columns, file, limit), bound)
        [(num,)] = self._db.fetchall()
        if limit is None or num < limit:
            return num, False
        self._execute(beyond(sql, limit), bound)
        return num, bool(self._db.fetchall())

    def _described(self, sql: str, bound: dict[str, Any]) -> list[tuple[str, str]]:
        """The columns, within the transaction that all else happens in; an error would have ended it."""
        self._db.execute("begin transaction read only")
        columns = columns_of(self._db, sql, bound)
        if not columns:
            self._db.execute("rollback")
            self._db.execute("begin transaction read only")
        return columns

    def _execute(self, asked: Wrapped, bound: dict[str, Any]) -> None:
        self._before = asked.before
        self._db.execute(asked.text, bound)

    def _batches(self, sql: str, kinds: list[str]) -> Iterator[list[Row]]:
        odd = odd_columns(kinds)
        as_json = nested(kinds)
        while True:
            with self._turn, self._one_line_errors(sql):
                if not self.is_open:
                    raise QueryError("the query was cancelled")
                rows = self._db.fetchmany(BATCH_ROWS)
            if not rows:
                return
            if as_json:
                rows = from_json(rows, as_json)
            yield plain_rows(rows, odd) if odd else rows

    @contextmanager
    def _one_line_errors(self, sql: str) -> Iterator[None]:
        try:
            if self._is_cancelled:
                raise QueryError("the query was cancelled")
            if self._is_late:
                raise self._late()
            with interruptible():
                yield
        except duckdb.InterruptException as e:
            if self._is_late and not self._is_cancelled:
                raise self._late() from e
            raise QueryError("the query was cancelled") from e
        except duckdb.OutOfMemoryException as e:
            raise QueryError("the query needs more memory than it may have; ask for fewer rows or groups") from e
        except duckdb.Error as e:
            raise placed(query_error(e), sql, self._before) from e

    def _late(self) -> TimedOutError:
        return TimedOutError(f"the query took longer than {self._timeout_s:g} s; ask for less, or give it more time")


def _bind(checked: Checked, params: dict[str, Any]) -> dict[str, Any]:
    for name in params:
        if name not in checked.parameters:
            known = ", ".join(f"${known}" for known in sorted(checked.parameters)) or "none"
            raise QueryError(f"the query has no parameter ${name}; it has {known}")
    for name in sorted(checked.parameters):
        if name not in params:
            hint = did_you_mean(name, params) if params else f"give it with -p {name}=..."
            raise QueryError(f"the query asks for ${name}, which has no value; {hint}")
    return params

"""How a command gets at the store: through the owner if there is one, else on its own.

A session that stays uses owner.py: `take_ownership`, else a StoreClient until `owner_gone`. What an answer through
the owner does not need (duckdb, asyncio) is imported only when there is none.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError, UsageError
from dflash_tui.store.base import Store, StoreOptions
from dflash_tui.store.client import StoreClient, has_owner
from dflash_tui.store.interrupts import interruptible
from dflash_tui.store.lock import BUSY_AFTER_S, RETRY_S, StoreLock, holder
from dflash_tui.store.mirror import mirrored_runs
from dflash_tui.store.retrying import RetryingClient

if TYPE_CHECKING:
    from dflash_tui.store.database import Database

Notice = Callable[[str], None]


def _say_nothing(sentence: str) -> None:
    pass


def reader(notice: Notice = _say_nothing, options: StoreOptions | None = None) -> Store:
    """The store, to read from: the owner's, else the file itself, read-only. UsageError when there is none yet,
    StoreBusyError within 3 s when somebody holds it who does not answer. `notice` is told what was repaired."""

    def take_seat() -> Store:
        return _seat_to_read(notice, options or StoreOptions())

    def open_file() -> Store:
        return _open_for_reading(notice, options or StoreOptions())

    store = take_seat()
    return RetryingClient(take_seat, open_file) if isinstance(store, StoreClient) else store


def _seat_to_read(notice: Notice, options: StoreOptions) -> Store:
    deadline = time.monotonic() + BUSY_AFTER_S
    while True:
        is_late = time.monotonic() > deadline
        if has_owner():
            return StoreClient()
        # An owner to be is let pass: a stream of readers that hold the file would keep it out for ever. One that takes
        # long, a rebuild say, may have left the file to whom it does not hold up.
        if is_late or not StoreLock.is_taken():
            try:
                return _open_for_reading(notice, options)
            except StoreBusyError:
                # Whoever holds it may be about to answer at the socket.
                if is_late:
                    raise
        time.sleep(RETRY_S)


@interruptible()
def _open_for_reading(notice: Notice, options: StoreOptions) -> "Database":
    from dflash_tui.store.database import Database, SchemaVersionError
    from dflash_tui.store.engine import duckdb
    from dflash_tui.store.opening import busy_error

    path = paths.database_file()
    if path.exists():
        try:
            return Database(path, options, read_only=True)
        except (duckdb.Error, SchemaVersionError) as e:
            if isinstance(e, duckdb.Error) and (busy := busy_error(e)):
                raise busy from e
    elif not mirrored_runs():
        raise UsageError("there is no store yet: `dflash-tui demo`, `launch` or `ingest` makes one")
    # Missing or broken: a writer makes it anew from the mirrors.
    with writer(notice, options):
        pass
    try:
        return Database(path, options, read_only=True)
    except duckdb.Error as e:
        raise busy_error(e) or DflashError(f"{path}: cannot be opened ({e})") from e


@contextmanager
def writer(notice: Notice = _say_nothing, options: StoreOptions | None = None) -> Iterator[Store]:
    """The store, to write to: the owner's, else this process is the owner until the `with` is left. StoreBusyError
    within 3 s when somebody holds it who does not answer."""

    def take_seat() -> AbstractContextManager[Store]:
        return _seat_to_write(notice, options or StoreOptions())

    with take_seat() as store:
        if isinstance(store, StoreClient):
            with RetryingClient(take_seat) as client:
                yield client
        else:
            yield store


@contextmanager
def _seat_to_write(notice: Notice, options: StoreOptions) -> Iterator[Store]:
    deadline = time.monotonic() + BUSY_AFTER_S
    while True:
        # Before the last look: on a busy machine, loading what an owner needs may alone take so long.
        is_late = time.monotonic() > deadline
        if has_owner():
            yield StoreClient()
            return
        from dflash_tui.store.owner import take_ownership
        from dflash_tui.store.serving import served

        owner = take_ownership(notice, options)
        if owner:
            with served(owner):
                yield owner.database
            return
        if is_late:
            raise StoreBusyError(f"the store is held by {holder()}, which does not answer; end it, or try again later")
        time.sleep(RETRY_S)

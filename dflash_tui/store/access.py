"""How a command gets at the store: through the owner if there is one, else on its own.

A session that stays uses owner.py: `take_ownership`, else a StoreClient until `owner_gone`. What an answer through
the owner does not need (duckdb, asyncio) is imported only when there is none.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dflash_tui import paths
from dflash_tui.errors import DflashError, StoreBusyError, UsageError
from dflash_tui.store.base import Store, StoreOptions
from dflash_tui.store.client import StoreClient, has_owner
from dflash_tui.store.lock import BUSY_AFTER_S, RETRY_S, StoreLock, holder
from dflash_tui.store.mirror import mirrored_runs
from dflash_tui.store.retrying import RetryingClient

if TYPE_CHECKING:
    from dflash_tui.store.database import Database
    from dflash_tui.store.owner import Owner

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


def _open_for_reading(notice: Notice, options: StoreOptions) -> "Database":
    import duckdb

    from dflash_tui.store.database import Database, SchemaVersionError
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

        owner = take_ownership(notice, options)
        if owner:
            with _served(owner):
                yield owner.database
            return
        if is_late:
            raise StoreBusyError(f"the store is held by {holder()}, which does not answer; end it, or try again later")
        time.sleep(RETRY_S)


@contextmanager
def _served(owner: "Owner") -> Iterator[None]:
    """Others are answered from a thread of its own while the command works."""
    import asyncio

    loop = asyncio.new_event_loop()
    is_serving = threading.Event()
    stop = asyncio.Event()
    failed: list[BaseException] = []
    serving: list[asyncio.Task[Any]] = []

    async def serve() -> None:
        if stop.is_set():
            owner.give_up()
            return
        serving.extend(filter(None, [asyncio.current_task()]))
        async with owner:
            is_serving.set()
            await stop.wait()

    def end() -> None:
        stop.set()
        if not is_serving.is_set():
            # It still opens the database, or has not begun to.
            for task in serving:
                task.cancel()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        except BaseException as e:  # noqa: BLE001 - raised below, in the thread of who works here
            failed.append(e)
        finally:
            is_serving.set()

    thread = threading.Thread(target=run, name="store-owner")
    try:
        try:
            # A Ctrl-C inside `start` would leave a thread that nobody knows of.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        is_serving.wait()
        if not failed:
            yield
    finally:
        # A loop that is closed has ended by itself.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end)
        if thread.ident is not None:
            thread.join()
        else:
            loop.close()
            owner.give_up()
    if failed:
        if isinstance(failed[0], OSError):
            raise DflashError(f"{paths.socket_file()}: cannot be served ({failed[0]})") from failed[0]
        raise failed[0]

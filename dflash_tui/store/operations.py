"""What each request does with the open database. Queries and waiting are a conversation: the owner's own.

The owner works so for others; a command that its owner left alone, and that is owner now itself, for itself.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dflash_tui.store.base import Progress
from dflash_tui.store.database import Database
from dflash_tui.store.frames import Request
from dflash_tui.store.wire import (
    Check,
    Detail,
    Event,
    Forget,
    Ingest,
    Panels,
    Refresh,
    RegisterRun,
    Resolve,
    Runs,
    Snapshot,
)


def operation(database: Database, request: Request, progress: Progress) -> Callable[[], Any]:
    """The operation that is asked for, ready to be done in a thread."""
    match request:
        case Panels():
            return partial(
                database.report, request.run_id, request.names, request.window, request.buckets, request.stretches
            )
        case Check():
            return partial(database.check, request.run_id, request.baseline)
        case Resolve():
            return partial(database.window, request.run_id, request.window)
        case Runs():
            return database.runs
        case Detail():
            return partial(database.detail, request.run_id)
        case RegisterRun():
            return partial(database.register_run, request.record)
        case Event():
            return partial(database.event, request.run_id, request.event)
        case Forget():
            return partial(database.forget, request.run_id)
        case Ingest():
            file = Path(request.file)
            return partial(database.ingest, request.run_id, file, shape=request.shape, progress=progress)
        case Snapshot():
            return partial(database.snapshot, Path(request.path))
        case Refresh():
            return partial(database.refresh, request.run_id)
        case _:
            raise AssertionError(request)

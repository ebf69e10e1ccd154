"""What can be asked of the owner through its socket, beside a query. How it travels stands in frames.py."""

import msgspec

from dflash_tui.errors import UsageError
from dflash_tui.runs import RunEvent, RunRecord, Stretches, Window
from dflash_tui.store.frames import Query, Request


class Panels(Request, tag="panel"):
    run_id: str
    names: list[str] | None
    window: Window
    buckets: int
    stretches: Stretches | None = None


class Check(Request, tag="check"):
    run_id: str
    baseline: str | None = None


class Resolve(Request, tag="window"):
    run_id: str
    window: Window


class Runs(Request, tag="runs"):
    pass


class Detail(Request, tag="detail"):
    run_id: str


class RegisterRun(Request, tag="register_run"):
    record: RunRecord


class Event(Request, tag="event"):
    run_id: str
    event: RunEvent


class Forget(Request, tag="forget"):
    run_id: str


class Ingest(Request, tag="ingest"):
    """Tells its progress before the answer."""

    run_id: str
    file: str
    shape: str | None = None


class Snapshot(Request, tag="snapshot"):
    path: str


class Refresh(Request, tag="refresh"):
    run_id: str | None


class Wait(Request, tag="wait"):
    """Answered by signs of life alone, until the owner goes."""


AnyRequest = (
    Query | Panels | Check | Resolve | Runs | Detail | RegisterRun | Event | Forget | Ingest | Snapshot | Refresh | Wait
)


def decode_request(line: bytes) -> AnyRequest:
    """UsageError for what is none, as from a client of another version."""
    try:
        return msgspec.json.decode(line, type=AnyRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as e:
        raise UsageError(f"the store's owner does not understand this request ({e}): is it of another version?") from e

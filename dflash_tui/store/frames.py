"""Requests and answers as bytes: one JSON line a request; a JSON line with a blob's length, then the blob.

A connection carries one request. Empty lines are signs of life while the owner works. Blobs are msgpack: NaN, NULL and
integers of 64 bits travel as they are, larger ones as an extension. No I/O here, and nothing heavy: `query` waits for
this to be imported. What else can be asked stands in wire.py.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from dflash_tui import errors
from dflash_tui.errors import DflashError, QueryError

# While the owner works it sends an empty line this often; a client that hears nothing for SILENT_S gives up.
ALIVE_EVERY_S = 1.0
SILENT_S = 10.0
# The first one comes as soon as a request was read: one that hangs is told from one that works within 3 s in all.
HELLO_S = 2.5
MAX_REQUEST_BYTES = 4 << 20
_BIG_INT = 1
T = TypeVar("T")


class Request(msgspec.Struct, tag_field="op"):
    """One of the operations below, as a JSON object with its name under "op"."""


class Query(Request, tag="query"):
    sql: str
    params: dict[str, Any]
    timeout_s: float | None


class IngestProgress(msgspec.Struct, frozen=True):
    """How far an ingest is: `rows` that are committed, bytes of the log that are, of how many that are to be taken in.

    `bytes_total` is 0 while the log is still being copied.
    """

    rows: int
    bytes_done: int
    bytes_total: int


# Called as an ingest goes on, in whatever thread does the work. It may raise: the ingest ends there, and what was
# committed stays.
Progress = Callable[[IngestProgress], None]


def no_progress(progress: IngestProgress) -> None:
    """For who does not want to know."""


class Problem(msgspec.Struct):
    """An error on its way: the name of its class, its sentence, and the column in a query's text."""

    kind: str
    text: str
    column: int | None = None


class Head(msgspec.Struct, omit_defaults=True):
    """One answer: an error, or a blob of `size` bytes behind this line, the last one unless `has_more`.

    One with `progress` is none: the answer is still to come.
    """

    problem: Problem | None = None
    progress: IngestProgress | None = None
    size: int = 0
    has_more: bool = False


class QueryHead(msgspec.Struct):
    """The first blob of a query's answer; each later one is a list of rows."""

    columns: list[str]
    types: list[str]


_KINDS: dict[str, type[DflashError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, DflashError)
}
_encoder = msgspec.msgpack.Encoder()


def pack(value: Any) -> bytes:
    """`value` as msgpack, integers beyond 64 bits included."""
    try:
        return _encoder.encode(value)
    except OverflowError:
        return _encoder.encode(_with_big_ints(msgspec.to_builtins(value, builtin_types=(bytes,))))


def _with_big_ints(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(_BIG_INT, str(value).encode())
    if isinstance(value, list | tuple):
        return [_with_big_ints(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_big_ints(item) for key, item in value.items()}
    return value


def unpack(data: bytes, kind: type[T]) -> T:
    return msgspec.msgpack.decode(data, type=kind, ext_hook=_big_int)


def _big_int(code: int, data: memoryview) -> int:
    if code != _BIG_INT:
        raise ValueError(f"unknown extension {code}")
    return int(bytes(data))


def encode_request(request: Request) -> bytes:
    return msgspec.json.encode(request) + b"\n"


def frame(blob: bytes, *, has_more: bool = False) -> bytes:
    return msgspec.json.encode(Head(size=len(blob), has_more=has_more)) + b"\n" + blob


def progress_frame(progress: IngestProgress) -> bytes:
    return msgspec.json.encode(Head(progress=progress)) + b"\n"


def problem_frame(error: DflashError) -> bytes:
    column = error.column if isinstance(error, QueryError) else None
    return msgspec.json.encode(Head(problem=Problem(type(error).__name__, str(error), column))) + b"\n"


def raised(problem: Problem) -> DflashError:
    """The error that the owner met, as the class it had there."""
    kind = _KINDS.get(problem.kind, DflashError)
    return QueryError(problem.text, problem.column) if kind is QueryError else kind(problem.text)

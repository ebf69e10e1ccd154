"""`train_log.jsonl`: one strict-JSON record a line, flushed, and nothing else.

Owns how a record is written, not what is in it. Keys are the columns of the session's table `records`; a new one has to
be made there too.
"""

import json
import math
import time
from pathlib import Path
from typing import Any

# Enough to tell any two float32 apart: losses are compared bit by bit between a run and its resumed twin.
_DIGITS = 9


class Log:
    """Appends to the log of a run; a line that a crash left torn is closed first, so that no record is lost to it.

    Only the first of several processes writes, except what happens to another alone.
    """

    def __init__(self, path: Path, rank: int = 0) -> None:
        self._rank = rank
        self._file = path.open("a+b")
        if self._file.tell() and rank == 0:
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def write(self, event: str, *, alone: bool = False, **fields: Any) -> None:
        """One record; `alone` says that it is this process's own, whichever it is."""
        if self._rank and not alone:
            return
        if self._rank:
            fields = {"rank": self._rank, **fields}
        record = {"event": event, **{k: strict(v) for k, v in fields.items()}, "time": round(time.time(), 3)}
        self._file.write(json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def strict(value: Any) -> Any:
    """`value` as strict JSON has it: non-finite numbers are the strings "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value

"""Which file is a script's log, and how its lines read: settled once, by the first bytes that say so.

A log of our own trainer needs none of this: it is train_log.jsonl, and JSON lines.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from dflash_tui.errors import UsageError
from dflash_tui.remote.adopt import FoundLog
from dflash_tui.remote.follow import LOG, Chunk
from dflash_tui.runs import RunRecord
from dflash_tui.store.shapes import detect, line_reader, packing
from dflash_tui.text import visible

# The kinds of runs that this is for.
KINDS = frozenset({"script", "adopted"})
# What a script prints is mixed with whatever else goes to its terminal: only records are looked for.
_PRINTED = "text"
_read_printed = line_reader(_PRINTED)
_COMMON = {
    "train_log",
    "trainer_log",
    "train",
    "log",
    "logs",
    "output",
    "stdout",
    "stderr",
    "nohup",
    "metrics",
    "history",
}


def settled(record: RunRecord, chunks: Sequence[Chunk]) -> RunRecord:
    """`record` with the log and the shape that these chunks, not yet in the mirror, let us know; else as it is.

    A script that was given no log has train_log.jsonl in its folder as soon as there is a line in it, else its output
    as soon as there is a record in that. It is not changed afterwards: no line is taken from both.
    """
    for chunk in chunks:
        if chunk.stream == LOG and chunk.data and not chunk.reset and chunk.cursor.offset == len(chunk.data):
            shape = detect(chunk.data)
            shape = _PRINTED if shape == "trainer_state" else shape
            return replace(record, log=record.log or f"{record.path}/{LOG}", shape=shape)
    if record.log is None and any(_has_record(chunk.data) for chunk in chunks if chunk.stream != LOG):
        [first, *_] = [chunk.stream for chunk in chunks if chunk.stream != LOG]
        return replace(record, log=f"{record.path}/{first}", shape=_PRINTED)
    return record


def followable(found: FoundLog) -> str:
    """The shape of a log that is to be followed where it lies; UsageError for one that cannot be."""
    if found.head.startswith(packing.GZIP):
        raise UsageError(
            f"{visible(found.path)}: is packed, so nobody writes it any more: copy it here and `ingest` it"
        )
    if reason := packing.objection(found.head):
        raise UsageError(f"{visible(found.path)}: {reason}")
    if b"\0" in found.head[:1024].strip(b"\0"):
        raise UsageError(f"{visible(found.path)}: is no text, so it cannot be followed as a log")
    shape = detect(found.head)
    if shape == "trainer_state":
        raise UsageError(
            f"{visible(found.path)}: is a JSON document that is written anew each time, not a log that grows:"
            " copy it here and `ingest` it, or attach to what its trainer prints"
        )
    # Of an empty one everything is still to be learned.
    return shape


def name_of_log(path: str) -> str:
    """What people call a run by its log: the file's stem, or its folder's name where that says more."""
    file = PurePosixPath(path)
    is_common = file.stem.lower() in _COMMON or file.stem.lower().startswith("events")
    return file.parent.name if is_common and file.parent.name else file.stem


def _has_record(data: bytes) -> bool:
    return any(_read_printed(line).objects for line in data.split(b"\n"))

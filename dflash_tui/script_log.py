"""Which file is a script's log, and how its lines read: settled once, by the first bytes that say so.

A log of our own trainer needs none of this: it is train_log.jsonl, and JSON lines.
"""

from collections.abc import Sequence
from dataclasses import replace

from dflash_tui.remote.follow import LOG, Chunk
from dflash_tui.runs import RunRecord
from dflash_tui.store.shapes import detect, line_reader

# The kinds of runs that this is for.
KINDS = frozenset({"script", "adopted"})
# What a script prints is mixed with whatever else goes to its terminal: only records are looked for.
_PRINTED = "text"
_read_printed = line_reader(_PRINTED)


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


def _has_record(data: bytes) -> bool:
    return any(_read_printed(line).objects for line in data.split(b"\n"))

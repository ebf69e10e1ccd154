"""A log on this machine -> its mirror, as far as it is new. What `ingest` does before anything is parsed."""

from pathlib import Path
from typing import BinaryIO

from dflash_tui.errors import UsageError
from dflash_tui.runs import Cursor
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, anchor

_BLOCK_BYTES = 4 << 20
_ANCHOR_BYTES = 64


def copy_log(file: Path, mirror: Mirror) -> None:
    """Append to the mirror what `file` has beyond it. A file that is no longer what the mirror began with starts a
    new generation. UsageError when it cannot be read."""
    try:
        with file.open("rb") as log:
            cursor = mirror.cursor(TRAIN_LOG)
            if reason := _why_anew(log.seek(0, 2), cursor, log):
                mirror.start_generation(TRAIN_LOG, reason)
                cursor = Cursor()
            log.seek(cursor.offset)
            offset = cursor.offset
            tail = b""
            while block := log.read(_BLOCK_BYTES):
                offset += len(block)
                tail = (tail + block)[-_ANCHOR_BYTES:]
                mirror.append(TRAIN_LOG, block, Cursor(offset, None, anchor(tail)))
    except OSError as e:
        raise UsageError(f"{file}: cannot be read ({e.strerror})") from e


def _why_anew(size: int, cursor: Cursor, log: BinaryIO) -> str | None:
    if size < cursor.offset:
        return "truncated"
    log.seek(max(0, cursor.offset - _ANCHOR_BYTES))
    return None if anchor(log.read(cursor.offset - log.tell())) == cursor.anchor else "rewritten"

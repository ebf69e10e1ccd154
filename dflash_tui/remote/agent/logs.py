"""Reading files that grow, from a cursor: offset, inode, and a hash of the bytes before the offset.

What was read is known by the cursor that comes back in the next request. What is remembered here (`memory.py`) only
saves a look at a file that is as it was.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any, Dict, List, Optional, Tuple

from . import memory
from .errors import Refused
from .folder import LOG, OUTPUT_LOG, Run
from .state import ALIVE, UNKNOWN, look

# One noisy run must not starve the others of its host, nor one answer the link.
FILE_BYTES = 1 << 18
ANSWER_BYTES = 1 << 22
# What `log` says instead of a path.
OUTPUT = "output"
_ANCHOR_BYTES = 64

Json = Dict[str, Any]

_SAME: Json = {"reset": None, "more": False}
# By the folder of each run that is followed, what was said last of its state.
_told: Dict[str, Json] = {}


def read(op: Json, budget: int) -> Tuple[Json, bytes]:
    """What `path` holds beyond the cursor (`offset`, `inode`, `anchor`), at most `budget` and FILE_BYTES bytes of it.

    Only whole lines, unless `final` says that nobody writes any more, or a line alone is longer than the budget. The
    answer holds the next cursor, the file's size, whether there is `more` to ask for at once (which a torn last line is
    not, and what the budget had no room for is), and `reset` where the file is another one than the cursor meant,
    which is then read from its beginning: "rotated" (after the rest of the old file, if it lies at `<path>.1`),
    "truncated" or "rewritten". A file that is not there is `missing`.
    """
    path, inode = op["path"], op.get("inode")
    budget = min(budget, FILE_BYTES)
    if not os.path.isabs(path):
        raise Refused("%r is no absolute path" % path)
    opened = _open(path)
    if opened is None:
        return {"missing": True}, b""
    fd, found = opened
    try:
        is_final = bool(op.get("final"))
        if inode is not None and found.st_ino != inode:
            rest = _read_rotated(path + ".1", op, budget)
            return rest if rest else _read(fd, found, {"offset": 0}, budget, is_final, "rotated")
        return _read(fd, found, op, budget, is_final)
    finally:
        os.close(fd)


def follow(op: Json, budget: int) -> Tuple[Json, bytes]:
    """The status of a run and what is new in its log and outputs, beyond `cursors` ({stream: cursor}).

    Streams are `train_log.jsonl` and `attempts/<n>/output.log`, from the newest attempt that the cursors know on; of an
    older one that they know, the rest. What stands for `train_log.jsonl` is the file `log`, by default the one of that
    name in the run's folder; for "output" it is the outputs of all attempts, one behind the other. A stream without
    news is left out; so is the status (null) when it is what was told last and `is_known` says that this arrived. It
    has no ages, which always change, and no checkpoint: they are for `status` to tell.
    """
    run = Run(op["workdir"], op["run_id"])
    # The status first: what it says is over has been written, so what is read after it is complete.
    found, numbers = look(run)
    found.update(age_s=None, heartbeat_age_s=None)
    cursors = op["cursors"]
    chunks: List[Json] = []
    pieces: List[bytes] = []
    for stream, is_final in _streams(run, numbers, cursors, is_over=found["state"] not in ALIVE):
        cursor, log = cursors.get(stream, {}), op.get("log") if stream == LOG else None
        if log == OUTPUT:
            meta, data = _read_outputs(run, {**cursor, "final": is_final}, budget)
        else:
            meta, data = _read_again(log or "%s/%s" % (run.path, stream), cursor, is_final, budget)
        if "missing" in meta or not _is_news(meta, data):
            continue
        budget -= len(data)
        pieces.append(data)
        chunks.append({"stream": stream, "bytes": len(data), **meta})
    is_known = op.get("is_known") and _told.get(run.path) == found
    _told[run.path] = found
    return {"status": None if is_known else {**UNKNOWN, **found}, "chunks": chunks}, b"".join(pieces)


def _read_again(path: str, cursor: Json, is_final: bool, budget: int) -> Tuple[Json, bytes]:
    """As `read`; of a file that is as it was when there was no news of it beyond this cursor, `_SAME`."""
    stamp = memory.look(path)
    if memory.held(path, stamp) == (cursor, is_final):
        return _SAME, b""
    meta, data = read({**cursor, "path": path, "final": is_final}, budget)
    if "missing" not in meta and not _is_news(meta, data):
        memory.keep(path, stamp, (cursor, is_final))
    return meta, data


def _is_news(meta: Json, data: bytes) -> bool:
    return bool(data or meta["reset"] or meta["more"])


def _read_outputs(run: Run, request: Json, budget: int) -> Tuple[Json, bytes]:
    """The outputs of all attempts as one log: behind the end of each comes the next that says something, as a file
    that was rotated."""
    files = [run.attempt(number).file(OUTPUT_LOG) for number in run.attempts()]
    files = [file for file in files if _size(file)]
    inode = request.get("inode")
    at = next((n for n, file in enumerate(files) if os.stat(file).st_ino == inode), 0)
    if not files or (inode is not None and os.stat(files[at]).st_ino != inode):
        return {"missing": True}, b""
    is_last = at == len(files) - 1
    meta, data = read({**request, "path": files[at], "final": request["final"] or not is_last}, budget)
    if is_last:
        return meta, data
    if data or meta["more"] or inode is None:
        return {**meta, "more": True}, data
    following, data = read({"path": files[at + 1], "final": request["final"] or at + 2 < len(files)}, budget)
    more = following["more"] or at + 2 < len(files)
    # Without a byte of the next one, the cursor stays where it is: it would not be known from none at all.
    return ({**following, "reset": "rotated", "more": more} if data else {**meta, "more": more}), data


def _streams(run: Run, numbers: List[int], cursors: Json, is_over: bool) -> List[Tuple[str, bool]]:
    streams = {number: "attempts/%d/%s" % (number, OUTPUT_LOG) for number in numbers}
    newest_known = max((number for number in numbers if streams[number] in cursors), default=1)
    wanted = [(LOG, is_over)]
    for number, stream in streams.items():
        if number >= newest_known or _is_unread("%s/%s" % (run.path, stream), cursors.get(stream)):
            wanted.append((stream, is_over or number < numbers[-1]))
    return wanted


def _is_unread(path: str, cursor: Optional[Json]) -> bool:
    """Whether a file that was read before is longer than that."""
    return cursor is not None and _size(path) > int(cursor.get("offset") or 0)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _read(
    fd: int, found: os.stat_result, cursor: Json, budget: int, is_final: bool, reset: Optional[str] = None
) -> Tuple[Json, bytes]:
    offset = int(cursor.get("offset") or 0)
    if found.st_size < offset:
        return _read(fd, found, {"offset": 0}, budget, is_final, "truncated")
    # The anchor and the data in one read: a file that is rewritten between two would go unseen. No more than is there:
    # room for the whole budget takes ten times as long as what a sweep finds.
    begin = max(0, offset - _ANCHOR_BYTES)
    window = os.pread(fd, min(offset + budget, found.st_size) - begin, begin)
    before, data = window[: offset - begin], window[offset - begin :]
    if offset and _anchor(before) != cursor.get("anchor"):
        return _read(fd, os.fstat(fd), {"offset": 0}, budget, is_final, "rewritten")
    # Short of its budget, a read has met the end of the file: what it leaves is a line that is being written.
    is_torn_rest = not is_final and len(data) < budget
    if not is_final:
        whole = data.rfind(b"\n") + 1
        if whole or is_torn_rest:
            data = data[:whole]
    end = offset + len(data)
    meta = {
        "offset": end,
        "inode": found.st_ino,
        "anchor": _anchor((before + data)[-_ANCHOR_BYTES:]),
        "size": found.st_size,
        "more": end < found.st_size and not is_torn_rest,
        "reset": reset,
    }
    return meta, data


def _read_rotated(path: str, op: Json, budget: int) -> Optional[Tuple[Json, bytes]]:
    """The rest of the file that the cursor means, if it was renamed to `path` and has any."""
    opened = _open(path)
    if opened is None:
        return None
    fd, found = opened
    try:
        if found.st_ino != op["inode"]:
            return None
        meta, data = _read(fd, found, op, budget, is_final=True)
        is_rest = not meta["reset"] and (data or meta["more"])
        # Behind the rest comes the new file.
        return ({**meta, "more": True}, data) if is_rest else None
    finally:
        os.close(fd)


def _open(path: str) -> Optional[Tuple[int, os.stat_result]]:
    """A descriptor of a plain file and what it is; None if there is none. Never waits for a pipe's other end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise Refused("%s is no plain file" % path)
    return fd, found


def _anchor(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()[:16] if data else ""

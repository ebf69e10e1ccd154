"""Which bytes of a mirror came from which file of this machine: `mirrors/<run_id>/sources.json`.

A file that is ingested again is known by its content, under whatever name: as far as its bytes are held they are not
taken twice. One that goes on is appended to, one whose content is new is a further part of the same log, and one that
was truncated or rewritten under its old name begins a new generation.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import msgspec

from dflash_tui.runs import Cursor
from dflash_tui.store.base import IngestSummary, RejectedLine
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.store.sources import Log

_BLOCK_BYTES = 4 << 20
# Up to so many bytes are compared; of more, as many at 64 places between the first and the last.
_COMPARED_BYTES = 8 << 20
_NUM_PLACES = 64
_LINE = re.compile(r"^line (\d+)(?=:)")


class Extent(msgspec.Struct):
    """Bytes of one generation, up to `end` (None: to its end, wherever that is). Lines count from 1."""

    generation: int
    begin: int
    end: int | None
    first_line: int
    source_line: int


class Source(msgspec.Struct):
    """A file, and where its bytes are, in order. `path` is "" when its name stands for another content now, and None
    when nobody noted it."""

    path: str | None
    extents: list[Extent]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy brought: `num_bytes` that are new, which begin at `first_line` of the mirror and at `source_line` of
    the file."""

    num_bytes: int
    first_line: int = 1
    source_line: int = 1
    notes: tuple[str, ...] = ()

    def told(self, summary: IngestSummary) -> IngestSummary:
        """`summary` with the file's own line numbers, and with what copying had to say."""
        notes = list(self.notes)
        if self.num_bytes and not (summary.rows or summary.rejects or summary.held_back_bytes):
            notes.append("no record was found in what is new; --as names its shape")
        warnings = [_LINE.sub(lambda found: f"line {self._of_file(int(found[1]))}", text) for text in summary.warnings]
        rejects = [self._placed(line) for line in summary.first_rejects]
        return msgspec.structs.replace(summary, first_rejects=rejects, warnings=[*notes, *warnings])

    def _placed(self, line: RejectedLine) -> RejectedLine:
        if line.line_no < self.first_line:
            return msgspec.structs.replace(line, reason=f"{line.reason} (the last line of what was ingested before)")
        return msgspec.structs.replace(line, line_no=self._of_file(line.line_no))

    def _of_file(self, line_no: int) -> int:
        return line_no - self.first_line + self.source_line if line_no >= self.first_line else line_no


def copy_log(log: Log, mirror: Mirror) -> Copied:
    """Append to the mirror what `log` has beyond it. DflashError when the mirror cannot be written."""
    if not log.size:
        # What was emptied to be written anew says nothing before its first byte.
        return Copied(0, notes=tuple(log.notes))
    sources = _read(mirror)
    path = str(log.file.resolve())
    held, source = _find(log, mirror, sources, path)
    if source is None:
        for before in sources:
            if before.path in (path, None) and before.extents[-1].end is None:
                _begin_generation(mirror, sources, "truncated" if log.size < _size(mirror, before) else "rewritten")
        source = Source(path, [])
        sources.append(source)
    # What is only the beginning of a source may be that of another log as well: it takes no name away.
    if held == _size(mirror, source):
        for other in sources:
            if other is not source and other.path == path:
                other.path = ""
        source.path = path
    if held < log.size:
        held = _open_extent(log, mirror, sources, source, held)
    _write(mirror, sources)
    last = source.extents[-1]
    if held < log.size:
        _append(log, mirror, held, last)
    return Copied(log.size - held, last.first_line, last.source_line, tuple(log.notes))


def _find(log: Log, mirror: Mirror, sources: list[Source], path: str) -> tuple[int, Source | None]:
    """The source that `log` is, or goes on, and how many of its bytes are held."""
    best: tuple[int, Source | None] = (0, None)
    # The one of this name comes first: of two that hold the same it is the one.
    for source in sorted(sources, key=lambda source: source.path != path):
        size = _size(mirror, source)
        held = min(size, log.size)
        is_it = size > 0 or source.path == path
        if is_it and (held > best[0] or best[1] is None) and _is_held(log, mirror, source, held):
            best = (held, source)
    return best


def _is_held(log: Log, mirror: Mirror, source: Source, size: int) -> bool:
    at = 0
    for extent in source.extents:
        length = min(_length(mirror, extent), size - at)
        if length > 0 and not _is_same(log.lines, at, mirror.path(TRAIN_LOG, extent.generation), extent.begin, length):
            return False
        at += max(0, length)
    return True


def _is_same(a: IO[bytes], a_at: int, b_file: Path, b_at: int, length: int) -> bool:
    block = min(length, _BLOCK_BYTES) if length <= _COMPARED_BYTES else _COMPARED_BYTES // _NUM_PLACES
    places: Iterable[int] = range(0, length, block)
    if length > _COMPARED_BYTES:
        places = ((length - block) * place // (_NUM_PLACES - 1) for place in range(_NUM_PLACES))
    with b_file.open("rb") as b:
        for place in places:
            a.seek(a_at + place)
            b.seek(b_at + place)
            num = min(block, length - place)
            if a.read(num) != b.read(num):
                return False
    return True


def _begin_generation(mirror: Mirror, sources: list[Source], reason: str) -> None:
    for source in sources:
        _close(mirror, source)
    mirror.start_generation(TRAIN_LOG, reason)


def _open_extent(log: Log, mirror: Mirror, sources: list[Source], source: Source, held: int) -> int:
    """Make the last extent of `source` the open one, at the mirror's end; how many bytes of `log` are before it."""
    if source.extents and source.extents[-1].end is None:
        return held
    for other in sources:
        _close(mirror, other)
    if source.extents:
        # Its last line had no end, and never gets it where it stands: it comes again, whole.
        torn = _torn_bytes(mirror, source.extents[-1])
        source.extents[-1].end = (source.extents[-1].end or 0) - torn
        held -= torn
    size = mirror.size(TRAIN_LOG)
    with mirror.path(TRAIN_LOG).open("rb") if size else BytesIO() as copy:
        num_lines = _count_lines(copy, size)
        copy.seek(max(0, size - 1))
        is_torn = size > 0 and copy.read(1) != b"\n"
    first_line = num_lines + 1 + is_torn
    extent = Extent(mirror.generation(TRAIN_LOG), size + is_torn, None, first_line, _count_lines(log.lines, held) + 1)
    source.extents.append(extent)
    return held


def _close(mirror: Mirror, source: Source) -> None:
    if source.extents and source.extents[-1].end is None:
        source.extents[-1].end = source.extents[-1].begin + _length(mirror, source.extents[-1])


def _torn_bytes(mirror: Mirror, extent: Extent) -> int:
    """How many bytes stand behind the last newline of a closed extent."""
    end = extent.end or 0
    at = end
    with mirror.path(TRAIN_LOG, extent.generation).open("rb") as copy:
        while at > extent.begin:
            begin = max(extent.begin, at - _BLOCK_BYTES)
            copy.seek(begin)
            if (found := copy.read(at - begin).rfind(b"\n")) >= 0:
                return end - (begin + found + 1)
            at = begin
    return end - extent.begin


def _append(log: Log, mirror: Mirror, held: int, extent: Extent) -> None:
    offset = mirror.size(TRAIN_LOG)
    if offset < extent.begin:
        offset += 1
        mirror.append(TRAIN_LOG, b"\n", Cursor(offset))
    mirror.append_file(TRAIN_LOG, log.lines, held)


def _count_lines(file: IO[bytes], size: int) -> int:
    """Newlines among the first `size` bytes."""
    file.seek(0)
    count = 0
    while size > 0 and (block := file.read(min(size, _BLOCK_BYTES))):
        count += block.count(b"\n")
        size -= len(block)
    return count


def _size(mirror: Mirror, source: Source) -> int:
    return sum(_length(mirror, extent) for extent in source.extents)


def _length(mirror: Mirror, extent: Extent) -> int:
    here = mirror.size(TRAIN_LOG, extent.generation)
    return max(0, min(here, here if extent.end is None else extent.end) - extent.begin)


def _file(mirror: Mirror) -> Path:
    return mirror.folder / "sources.json"


def _read(mirror: Mirror) -> list[Source]:
    try:
        return msgspec.json.decode(_file(mirror).read_bytes(), type=list[Source])
    except (OSError, msgspec.MsgspecError):
        # Made before this was noted, or lost: every generation is a file that nobody knows the name of.
        numbers = [number for number, _ in mirror.older(TRAIN_LOG)]
        sources = [Source(None, [Extent(number, 0, None, 1, 1)]) for number in numbers]
        for source in sources:
            _close(mirror, source)
        if mirror.size(TRAIN_LOG):
            sources.append(Source(None, [Extent(mirror.generation(TRAIN_LOG), 0, None, 1, 1)]))
        return sources


def _write(mirror: Mirror, sources: list[Source]) -> None:
    mirror.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = mirror.folder / ".sources.json.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(sources), indent=1) + b"\n")
    part.replace(_file(mirror))

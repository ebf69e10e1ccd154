"""Bytes of a log -> whole lines -> JSON objects, exactly. Knows no column, no run and no database.

A line is what ends in a newline. What stands behind the last one is held back until its rest arrives, so a poll may
cut anywhere, also inside a character.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

# What a slice may hold. The statement that parses one costs some milliseconds to plan, whatever its size, and several
# are in memory at once. Four slices of so many lines, or eight of half as many where lines are long, fill one of
# DuckDB's row groups (122,880) but for some rows: row groups that are half full are written again at a checkpoint.
SLICE_BYTES = 8 << 20
SLICE_LINES = 30_700
# Longer lines are refused: one must fit in memory several times over while it is parsed.
MAX_LINE_BYTES = 16 << 20
MAX_DEPTH = 64
# How much of a refused line is kept for people to look at.
KEPT_CHARS = 2000

_BARE = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.])([-+]?)(nan|inf(?:inity)?)\b', re.I)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Slice:
    """Some whole lines of a log: from `byte_offset` up to `end_offset`, the first being line `line_no`.

    `data` is without the last newline. `is_too_long` marks one line over the limit; then `data` is only its beginning.
    """

    byte_offset: int
    end_offset: int
    line_no: int
    num_lines: int
    data: bytes
    is_too_long: bool = False

    def raw_lines(self) -> list[bytes]:
        return self.data.split(b"\n")

    def halves(self) -> "tuple[Slice, Slice]":
        """Two slices of about as many bytes each; only for one of several lines."""
        cut = self.data.find(b"\n", len(self.data) // 2)
        cut = cut if cut >= 0 else self.data.rfind(b"\n")
        first, second = self.data[:cut], self.data[cut + 1 :]
        num, end = first.count(b"\n") + 1, self.byte_offset + cut + 1
        return (
            Slice(self.byte_offset, end, self.line_no, num, first),
            Slice(end, self.end_offset, self.line_no + num, self.num_lines - num, second),
        )


def slices(
    path: Path, byte_offset: int, line_no: int, *, size: int | None = None, is_closed: bool = False
) -> Iterator[Slice]:
    """The whole lines of the file from `byte_offset` on, where line `line_no` begins, as far as its first `size` bytes.

    `is_closed` says that nothing more will come, so that an unfinished last line is given too.
    """
    num_bytes = SLICE_BYTES
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size if size is None else size
        while byte_offset < size:
            # No more than there is: to be given memory for a whole slice takes longer than to read a small log.
            block = _block(file, byte_offset, min(num_bytes, size - byte_offset))
            if not block:
                return  # It became shorter under us.
            cut = block.rfind(b"\n")
            first = block.find(b"\n") if len(block) > MAX_LINE_BYTES else cut
            if not 0 <= first <= MAX_LINE_BYTES and len(block) > MAX_LINE_BYTES:
                end = byte_offset + first + 1 if first >= 0 else _line_end(file, byte_offset + len(block))
                if end is None and not is_closed:
                    return
                found = Slice(byte_offset, end or file.tell(), line_no, 1, block[:KEPT_CHARS], is_too_long=True)
            elif cut >= 0:
                num_lines = block.count(b"\n", 0, cut) + 1
                limit = _max_lines(cut // num_lines)
                if num_lines > limit:
                    cut, num_lines = _end_of_line(block, limit, num_lines), limit
                    # What is read beyond the cut is read again.
                    num_bytes = min(SLICE_BYTES, cut + cut // 16)
                found = Slice(byte_offset, byte_offset + cut + 1, line_no, num_lines, block[:cut])
            elif is_closed:
                found = Slice(byte_offset, byte_offset + len(block), line_no, 1, block)
            else:
                return
            byte_offset = found.end_offset
            line_no += found.num_lines
            yield found


def _block(file: BinaryIO, byte_offset: int, num_bytes: int) -> bytes:
    """Some bytes from there on: with a newline among them, all that the file has, or more than a line may have."""
    # A line that this cuts is read again with the next block: cheaper than to put blocks together.
    block = os.pread(file.fileno(), num_bytes, byte_offset)
    while b"\n" not in block and len(block) <= MAX_LINE_BYTES:
        more = os.pread(file.fileno(), SLICE_BYTES, byte_offset + len(block))
        if not more:
            break
        block += more
    return block


def _max_lines(mean_bytes: int) -> int:
    lines = SLICE_LINES
    while lines * mean_bytes > SLICE_BYTES and lines > 1:
        lines //= 2
    return lines


def _end_of_line(block: bytes, number: int, num_lines: int) -> int:
    """Where a line of a block of so many ends: guessed from their mean length, and corrected."""
    end = block.rfind(b"\n")
    cut = block.rfind(b"\n", 0, len(block) * number // num_lines)
    # Counting what stands behind it is less work: most of the block is before it.
    missing = number - num_lines + block.count(b"\n", cut + 1, end + 1)
    for _ in range(abs(missing)):
        cut = block.find(b"\n", cut + 1) if missing > 0 else block.rfind(b"\n", 0, cut)
    return cut


def _line_end(file: BinaryIO, offset: int) -> int | None:
    """Where the line ends in which `offset` stands; None: nowhere yet, and the file stands at its end."""
    file.seek(offset)
    while block := file.read(SLICE_BYTES):
        cut = block.find(b"\n")
        if cut >= 0:
            return offset + cut + 1
        offset += len(block)
    return None


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one line holds: its objects, or the reason why it is refused. `notes` tell what was not as it should be.

    `is_ignored` marks a line that is neither: plain words between the records of an output.
    """

    objects: list[dict[str, Any]]
    reason: str | None = None
    notes: tuple[str, ...] = ()
    is_ignored: bool = False


def parse(raw: bytes) -> Parsed:
    """One line, read exactly: NaN and infinities as they are written, several objects behind one another, the last
    of doubled keys. A blank line holds nothing."""
    notes: list[str] = []
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        text = raw.decode(errors="replace")
        notes.append(f"byte {raw[e.start]:#04x} is not UTF-8 and was replaced")
    text = text.removeprefix("\ufeff").strip(" \t\r\n")
    if text.startswith("\0") or text.endswith("\0"):
        # A machine that lost power leaves a hole of NULs where the file system had only kept the new length.
        text = text.strip("\0 \t\r\n")
        notes.append("NUL bytes around the record were dropped")
    if not text:
        return Parsed([])
    if _is_deep(text):
        return Parsed([], f"nested more than {MAX_DEPTH} levels deep")

    try:
        return Parsed(_objects(text, exact_decoder(notes)), None, tuple(notes))
    except ValueError as e:
        error = e
    # Python's own str() writes them in small letters, and so do C and Rust.
    if (plain := _BARE.sub(_in_full, text)) != text:
        with suppress(ValueError):
            return Parsed(_objects(plain, exact_decoder(notes)), None, tuple(notes))
    return Parsed([], _why_not(text, error), tuple(notes))


def _in_full(token: re.Match[str]) -> str:
    if not token[2]:
        return token[0]
    return "NaN" if token[2].lower() == "nan" else token[1].strip("+") + "Infinity"


def exact_decoder(notes: list[str]) -> json.JSONDecoder:
    """Reads JSON as Python writes it, the last of doubled keys, which are added to `notes`."""

    def merge(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged = dict(pairs)
        if len(merged) < len(pairs):
            doubled = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
            more = f" (and so of {len(doubled) - 1} more keys)" if len(doubled) > 1 else ""
            notes.append(f"key {doubled[0]!r} stands twice: its last value counts{more}")
        return merged

    return json.JSONDecoder(object_pairs_hook=merge)


def _objects(text: str, decoder: json.JSONDecoder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        if text[at] != "{":
            raise ValueError("no JSON object" if not found else "text after the record")
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        space = _SPACE.match(text, end)
        at = space.end() if space else end
    return found


def _why_not(text: str, error: ValueError) -> str:
    if "\0" in text:
        return "NUL bytes"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
    return str(error)


def _is_deep(text: str) -> bool:
    # Brackets inside strings are counted too; only a line with very many of them is looked at more closely.
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = deepest = 0
    is_string = False
    for part in re.finditer(r'\\.|["\[\]{}]', text):
        sign = part.group()
        if sign == '"':
            is_string = not is_string
        elif not is_string:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
            deepest = max(deepest, depth)
    return deepest > MAX_DEPTH

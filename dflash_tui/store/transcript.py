"""A run's words as rows to look at: the lines of its files in turn, and between them what is worth a mark.

Owns which row is which line. `look` finds out how far everything has grown and gives a `Layout`, which stays as it is
while others read from it. Blocking, but for `Layout.num_rows`; nothing here asks the tables (log_notes.py does).
"""

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal, NamedTuple

from dflash_tui.store.log_file import LogFile, RawLine
from dflash_tui.store.log_notes import LogNotes
from dflash_tui.store.log_words import Words
from dflash_tui.store.tail import Tail
from dflash_tui.text import visible

View = Literal["metrics", "output", "rejects"]
Kind = Literal["line", "note", "void", "reject"]


class Line(NamedTuple):
    """A row: line `line_no` (from 1) of the file `part`, made visible; a note stands above that line."""

    kind: Kind
    part: int
    line_no: int
    text: str
    size: int = 0
    """Bytes of the whole line, of which `text` may be the beginning."""
    is_cut: bool = False
    reason: str = ""
    num_over: int = 0
    """States of a progress bar that `text`, the last one, was written over."""


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one file: all its lines with `notes` above some, or only the lines in `kept` (from 0)."""

    number: int
    file: LogFile
    num_lines: int
    notes: Sequence[tuple[int, str]] = ()
    """(row in the part, words), in order."""
    kept: Sequence[int] | None = None
    void: Sequence[range] = ()
    rejects: Mapping[int, str] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        return self.num_lines + len(self.notes) if self.kept is None else len(self.kept)

    def line_at(self, row: int) -> int:
        """The line, from 0, that `row` holds or is a note above."""
        if self.kept is not None:
            return self.kept[row]
        return row - bisect_left(self.notes, row, key=lambda note: note[0])

    def row_of(self, line: int) -> int:
        """The row of a line; of one that is not kept, that of the next one that is."""
        if self.kept is not None:
            return min(bisect_left(self.kept, line), max(0, len(self.kept) - 1))
        row = line
        for place, _ in self.notes:
            if place > row:
                break
            row += 1
        return row

    def rows(self, first: int, count: int) -> list[Line]:
        count = min(count, self.num_rows - first)
        if count <= 0:
            return []
        if self.kept is not None:
            lines = self.kept[first : first + count]
            return [self._line(line, raw) for line in lines for raw in self.file.lines(line, 1)]
        begin = self.line_at(first)
        notes = dict(self.notes)
        raws = iter(enumerate(self.file.lines(begin, min(count, self.num_lines - begin)), begin))
        found = []
        for row in range(first, first + count):
            if row in notes:
                found.append(Line("note", self.number, self.line_at(row) + 1, visible(notes[row])))
            elif following := next(raws, None):
                found.append(self._line(*following))
        return found

    def search(self, row: int, words: Words, by: int, is_wanted: Callable[[], bool]) -> int | None:
        """As `Layout.search`; `row` may lie outside."""
        here = -1 if row < 0 else self.num_lines if row >= self.num_rows else self.line_at(row)
        if by > 0 and any(place == row for place, _ in self.notes):
            here -= 1
        found = next(self._matching(here, words, by, is_wanted), None)
        return None if found is None else self.row_of(found)

    def _matching(self, here: int, words: Words, by: int, is_wanted: Callable[[], bool]) -> Iterator[int]:
        first, last = (here + 1, self.num_lines - 1) if by > 0 else (0, here - 1)
        for number, block in self.file.blocks(first, last, backwards=by < 0) if first <= last else ():
            if not is_wanted():
                return
            found = [number + line for line in words.lines(block) if first <= number + line <= last]
            if self.kept is not None:
                found = [line for line in found if self.kept[self.row_of(line)] == line] if self.kept else []
            yield from found if by > 0 else reversed(found)

    def _line(self, line: int, raw: RawLine) -> Line:
        text = visible(raw.head.decode("utf-8", "replace"), keep="\t")
        is_void = any(line + 1 in stretch for stretch in self.void)
        reason = self.rejects.get(line + 1, "")
        kind: Kind = "reject" if reason else "void" if is_void else "line"
        return Line(kind, self.number, line + 1, text, raw.size, raw.is_cut, visible(reason), raw.num_over)


class Layout:
    """All rows as they were at one `look`; not `is_whole` while a filter has not looked through all lines."""

    def __init__(self, parts: Sequence[Part], is_whole: bool = True) -> None:
        self.parts, self.is_whole = parts, is_whole
        self._begins = [0, *accumulate(part.num_rows for part in parts)]
        self.num_bytes = sum(part.file.size for part in parts)

    def __eq__(self, other: object) -> bool:
        """Whether they are the same rows: the files are not read for it."""
        mine = (self.num_bytes, self.is_whole, self.parts)
        return isinstance(other, Layout) and mine == (other.num_bytes, other.is_whole, other.parts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def num_rows(self) -> int:
        return self._begins[-1]

    @property
    def num_lines(self) -> int:
        return sum(part.num_lines for part in self.parts)

    def rows(self, first: int, count: int) -> list[Line]:
        found: list[Line] = []
        for begin, part in zip(self._begins, self.parts, strict=False):
            skipped = max(0, first - begin)
            if len(found) < count and skipped < part.num_rows:
                found += part.rows(skipped, count - len(found))
        return found

    def row_of(self, number: int, line_no: int) -> int | None:
        """The row of line `line_no` (from 1) of the file `number`."""
        for begin, part in zip(self._begins, self.parts, strict=False):
            if part.number == number and part.num_rows:
                return begin + part.row_of(max(0, line_no - 1))
        return None

    def search(self, row: int, words: Words, by: int, is_wanted: Callable[[], bool]) -> int | None:
        """The nearest row behind `row` (before it, for a `by` of -1) whose line has `words`; it does not go round. None
        too when it `is_wanted` no more."""
        for begin, part in list(zip(self._begins, self.parts, strict=False))[::by]:
            if row < begin + part.num_rows - 1 if by > 0 else row > begin:
                found = part.search(row - begin, words, by, is_wanted)
                if found is not None:
                    return begin + found
        return None


@dataclass(slots=True)
class _Sieve:
    """What a filter lets through of a file, of which it has looked at so many lines and bytes."""

    kept: "array[int]" = field(default_factory=lambda: array("Q"))
    num_lines: int = 0
    num_bytes: int = -1


class Transcript:
    """One view of one run."""

    def __init__(self, run_id: str, view: View) -> None:
        self.view = view
        self.notes = LogNotes()
        self._tail = Tail(run_id, metrics=view != "output")
        self._files: dict[int, LogFile] = {}
        self._filter: Words | None = None
        self._sieves: dict[int, _Sieve] = {}
        self._turn = threading.Lock()

    def filter(self, words: Words | None) -> None:
        """Only lines that have `words` are rows from the next look on; None: all are."""
        self._filter, self._sieves = words, {}

    def look(self, is_wanted: Callable[[], bool]) -> Layout:
        """How everything stands now. A filter that `is_wanted` no more goes on with the next look."""
        with self._turn:
            words, sieves = self._filter, self._sieves
            parts = []
            for number, path in self._tail.files():
                file = self._files.setdefault(number, LogFile(path))
                file.path = path
                before = file.num_lines
                file.grow()
                if file.num_lines < before:
                    sieves.pop(number, None)
                part = self._part(number, file)
                if words is not None and part.kept is None:
                    sieve = sieves.setdefault(number, _Sieve())
                    _sift(file, words, sieve, is_wanted)
                    part = replace(part, notes=(), kept=sieve.kept)
                parts.append(part)
            return Layout(parts, all(sieve.num_lines >= self._files[n].num_lines - 1 for n, sieve in sieves.items()))

    def _part(self, number: int, file: LogFile) -> Part:
        num_lines = file.num_lines
        void, rejects = self.notes.void.get(number, ()), self.notes.rejects.get(number, {})
        if self.view == "rejects":
            lines = [line_no - 1 for line_no in sorted(rejects) if line_no <= num_lines]
            return Part(number, file, num_lines, kept=lines, void=void, rejects=rejects)
        if self.view == "output":
            above, void, rejects = [(1, f"attempt {number}")], (), {}
        else:
            above = [(1, f"the log begins anew: generation {number}")] if number > 1 else []
            above += self.notes.above.get(number, ())
        above = [(line_no, text) for line_no, text in above if line_no <= num_lines]
        notes = [(line_no - 1 + place, text) for place, (line_no, text) in enumerate(above)]
        return Part(number, file, num_lines, notes, void=void, rejects=rejects)


def _sift(file: LogFile, words: Words, sieve: _Sieve, is_wanted: Callable[[], bool]) -> None:
    num_lines, num_bytes = file.num_lines, file.size
    if sieve.num_bytes == num_bytes:
        return
    # The last line may still grow: it is looked at again. Whoever reads from an older layout keeps its array.
    kept = sieve.kept[: bisect_left(sieve.kept, sieve.num_lines)]
    first = sieve.num_lines
    for number, block in file.blocks(first, num_lines - 1) if first < num_lines else ():
        if not is_wanted():
            sieve.kept = kept
            return
        kept.extend(number + at for at in words.lines(block) if sieve.num_lines <= number + at < num_lines)
        sieve.num_lines = min(num_lines - 1, number + block.count(b"\n"))
    sieve.kept, sieve.num_bytes = kept, num_bytes

"""One file of a run's words, read by line number however long it is.

Owns its index: where a line begins, once every 64 KiB. Of the file itself nothing is kept, and no line is read beyond
what a person can look at. Blocking; one thread may call `grow` while others read what was there before.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_STRIDE = 64 << 10
# Read at once, and looked through at once: little enough that no other thread waits long for its turn.
_BLOCK = 4 * _STRIDE
# A line longer than this is cut: a terminal is no place for a 4 MB note.
MAX_LINE_BYTES = 20_000


class RawLine(NamedTuple):
    """`head` is as much of the line as is shown, without its end; `size` all its bytes.

    Of a progress bar, which writes over itself, it is the last state that says anything; `num_over` came before.
    """

    head: bytes
    size: int
    is_cut: bool = False
    num_over: int = 0


class LogFile:
    """Lines count from 0. What stands behind the last line's end is a line as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._size = 0
        self._num_ends = 0
        self._last_begin = 0
        # Line `numbers[k]` begins at byte `offsets[k]`. One value: whoever reads meanwhile keeps both.
        self._index = array("Q", [0]), array("Q", [0])

    @property
    def num_lines(self) -> int:
        return self._num_ends + (self._last_begin < self._size)

    @property
    def size(self) -> int:
        return self._size

    def grow(self) -> bool:
        """Look at what came since; whether there is another size. A file that shrank is another file."""
        before = self._size
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._size:
                    self._begin_anew()
                file.seek(self._size)
                while data := file.read(_BLOCK):
                    self._take(data)
        except FileNotFoundError:
            self._begin_anew()
        return self._size != before

    def _take(self, data: bytes) -> None:
        numbers, offsets = self._index
        for begin in range(0, len(data), _STRIDE):
            end = min(begin + _STRIDE, len(data))
            first = data.find(b"\n", begin, end)
            if first < 0:
                continue
            if self._size + first + 1 >= offsets[-1] + _STRIDE:
                # Number first: whoever reads meanwhile looks for numbers, and finds an offset to each.
                offsets.append(self._size + first + 1)
                numbers.append(self._num_ends + 1)
            self._num_ends += data.count(b"\n", begin, end)
            self._last_begin = self._size + data.rfind(b"\n", begin, end) + 1
        self._size += len(data)

    def lines(self, first: int, count: int) -> list[RawLine]:
        """`count` lines from `first` on, as many as there are."""
        numbers, offsets = self._index
        entry = bisect_right(numbers, first) - 1
        try:
            with self.path.open("rb") as file:
                file.seek(offsets[entry])
                for _ in range(first - numbers[entry]):
                    _read_line(file)
                lines = [_read_line(file) for _ in range(count)]
        except FileNotFoundError:
            return []
        return [line for line in lines if line is not None]

    def blocks(self, first: int, last: int, *, backwards: bool = False) -> Iterator[tuple[int, bytes]]:
        """The lines `first` to `last` and some around them, in blocks of whole lines: each with its first line."""
        step, size = _BLOCK // _STRIDE, self._size
        numbers, offsets = self._index
        begin, end = bisect_right(numbers, first) - 1, bisect_right(numbers, last)
        entries = range(begin, end, step)
        try:
            with self.path.open("rb") as file:
                for entry in reversed(entries) if backwards else entries:
                    offset = offsets[entry]
                    until = offsets[entry + step] if entry + step < len(offsets) else max(offset, size)
                    file.seek(offset)
                    yield numbers[entry], file.read(until - offset)
        except FileNotFoundError:
            return


def _read_line(file: BinaryIO) -> RawLine | None:
    part = file.readline(_BLOCK)
    if not part:
        return None
    size, states = 0, _States()
    while part:
        size += len(part)
        states.take(part.removesuffix(b"\n"))
        if part.endswith(b"\n"):
            size -= 1
            break
        part = file.readline(_BLOCK)
    return states.shown(size)


class _States:
    """What stands between the returns of one line, which comes in parts; of each no more is kept than is shown."""

    def __init__(self) -> None:
        self._now, self._num_bytes = b"", 0
        self._last, self._is_cut, self._num = b"", False, 0

    def take(self, part: bytes) -> None:
        first, *others = part.split(b"\r")
        self._go_on(first)
        for state in others:
            self._end()
            self._go_on(state)

    def shown(self, size: int) -> RawLine:
        if not self._num:
            return RawLine(self._now, size, self._num_bytes > len(self._now))
        self._end()
        return RawLine(self._last, size, self._is_cut, self._num - 1)

    def _go_on(self, state: bytes) -> None:
        self._num_bytes += len(state)
        self._now += state[: MAX_LINE_BYTES - len(self._now)]

    def _end(self) -> None:
        # Blanks only wipe out what stood there.
        if self._now.strip():
            self._last, self._is_cut = self._now, self._num_bytes > len(self._now)
            self._num += 1
        self._now, self._num_bytes = b"", 0

"""The rows of an answer, packed as they travel between processes: a tenth of what they take as Python's values.

One thread adds, another reads what is there so far. No more are kept than fit: who adds is told.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, overload

from dflash_tui.store.base import Row
from dflash_tui.store.frames import pack, unpack

MOST_ROWS = 500_000
MOST_BYTES = 64 << 20
# Few enough to be unpacked between two frames of a screen.
_PAGE_ROWS = 128
_MOST_OPEN = 8


class PackedRows(Sequence[Row]):
    def __init__(self, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._most_rows = most_rows
        self._bytes_left = most_bytes
        self._pages: list[bytes] = []
        self._ends: list[int] = []
        """How many rows there are up to the end of each page."""
        self._open: dict[int, list[Row]] = {}

    def add(self, rows: Sequence[Row]) -> bool:
        """Whether all of them found room."""
        for start in range(0, len(rows), _PAGE_ROWS):
            page = rows[start : start + min(_PAGE_ROWS, self._most_rows - len(self))]
            if not page or self._bytes_left <= 0:
                return False
            packed = pack(page)
            self._bytes_left -= len(packed)
            # In this order: a page that is counted is there.
            self._pages.append(packed)
            self._ends.append(len(self) + len(page))
        return True

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        page = bisect_right(self._ends, place)
        return self._page(page)[place - (self._ends[page - 1] if page else 0)]

    def __iter__(self) -> Iterator[Row]:
        """Every row once, none of them kept unpacked."""
        for packed in self._pages:
            yield from _unpacked(packed)

    def _page(self, page: int) -> list[Row]:
        if page not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[page] = _unpacked(self._pages[page])
        return self._open[page]


def _unpacked(packed: bytes) -> list[Row]:
    return unpack(packed, list[tuple[Any, ...]])

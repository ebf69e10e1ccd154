"""An answer on its way out: its rows counted, cut at a limit, and timed."""

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from dflash_tui.output.formats import Pieces
from dflash_tui.output.sink import Sink

if TYPE_CHECKING:
    from dflash_tui.store.answer import Answer, Row


class Delivered(NamedTuple):
    """What went out. `first_at` is when the first row came, by `perf_counter`; None when none did."""

    num_rows: int
    is_cut: bool
    num_bytes: int
    first_at: float | None


def deliver(answer: "Answer", pieces: Pieces, limit: int | None, sink: Sink) -> Delivered:
    """Write the first `limit` rows, each batch as soon as it is there."""
    rows = _Rows(answer, limit)
    for piece in pieces(answer.columns, answer.types, rows):
        sink.write(piece)
    return Delivered(rows.num, rows.is_cut, sink.num_bytes, rows.first_at)


class _Rows:
    """The batches of an answer up to `limit` rows; tells then how many there were, and whether there were more."""

    def __init__(self, answer: "Answer", limit: int | None) -> None:
        self.num = 0
        self.is_cut = False
        self.first_at: float | None = None
        self._answer = answer
        self._limit = limit

    def __iter__(self) -> "Iterator[list[Row]]":
        for batch in self._answer.batches():
            self.first_at = self.first_at or perf_counter()
            room = len(batch) if self._limit is None else min(len(batch), self._limit - self.num)
            self.num += room
            if room:
                yield batch if room == len(batch) else batch[:room]
            if room < len(batch):
                self.is_cut = True
                return

"""What a query answers with. A client of one query imports this: nothing heavy here."""

from collections.abc import Callable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any, Self

Row = tuple[Any, ...]


class Answer:
    """The result of a query, as a stream of row batches. Close it, or leave its `with`: it holds a cursor.

    Cells are None, bool, int of any size, float (NaN and infinities included), str, bytes, list or dict.
    Dates, times and intervals are ISO text; a DECIMAL of up to 15 digits is a float, a wider one is text.
    """

    def __init__(
        self, columns: list[str], types: list[str], batches: Iterator[list[Row]], close: Callable[[], None]
    ) -> None:
        self.columns = columns
        self.types = types
        self._batches = batches
        self._close = close

    def batches(self) -> Iterator[list[Row]]:
        """The rows, some thousands at a time, as they come; QueryError or TimedOutError may end them."""
        try:
            yield from self._batches
        finally:
            self.close()

    def rows(self) -> list[Row]:
        """All rows at once, for answers known to be small."""
        return [row for batch in self.batches() for row in batch]

    def begun(self) -> "Answer":
        """The same with its first rows in hand: behind them an owner that goes away is an error, or rows would come
        twice; before, another one can be asked."""
        batches = self.batches()
        first = next(batches, [])
        return Answer(self.columns, self.types, chain([first] if first else [], batches), self.close)

    def close(self) -> None:
        """Cancel what still runs. Harmless when everything has been read."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

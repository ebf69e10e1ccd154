"""The order of the list of runs: pinned ones first, then by a column. What a run has no value of comes last."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dflash_tui.ui.columns import Column
from dflash_tui.ui.run_columns import COLUMNS, RunRow

# The newest first, as the store has them, then by each column that has an order.
_CHOICES = (None, *(column for column in COLUMNS if column.sort_key))


@dataclass(frozen=True, slots=True)
class Order:
    """`column` None: the newest first. A column begins with what one looks for: the lowest loss, the highest step."""

    column: Column[RunRow] | None = None
    is_reversed: bool = False

    @property
    def is_falling(self) -> bool:
        return self.column is not None and self.column.falls != self.is_reversed

    def next(self) -> "Order":
        return Order(_CHOICES[(_CHOICES.index(self.column) + 1) % len(_CHOICES)])

    def reversed(self) -> "Order":
        return Order(self.column, not self.is_reversed)

    def by(self, column: Column[Any]) -> "Order":
        """By this column; by the one that it is ordered by already, the other way round."""
        if column.sort_key is None:
            return self
        return self.reversed() if column is self.column else Order(column)

    def laid_over(self, rows: Iterable[RunRow]) -> list[RunRow]:
        """`rows`, which come the newest first, in this order; equal ones stay as they come."""
        found = list(rows)
        key = self.column.sort_key if self.column else None
        if key is None:
            found = found[::-1] if self.is_reversed else found
        else:
            valued = [(value, row) for row in found if _is_some(value := key(row))]
            rest = [row for row in found if not _is_some(key(row))]
            valued.sort(key=lambda pair: pair[0], reverse=self.is_falling)
            found = [row for _, row in valued] + rest
        return sorted(found, key=lambda row: not row.is_pinned)


def _is_some(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))

"""The list of runs: a run a line, ages that count on between two looks at the store. Asks the store nothing.

What a column says stands in `run_columns`, in which order runs come in `run_order`, how a list moves in `listing`.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from dflash_tui.charts import spark
from dflash_tui.ui.cells import laid
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.listing import Listing
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.run_columns import COLUMNS, SPARK, RunRow
from dflash_tui.ui.run_order import Order

RISING, FALLING = "▲", "▼"
# One is made anew only when its run has other losses: a list is drawn every second.
_spark = lru_cache(maxsize=1024)(spark)


class RunList(Listing[RunRow]):
    COLUMNS = COLUMNS
    BADGE_CELLS = 1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the dashboard of the run under the cursor."),
    ]

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen_at = clock()
        self._order = Order()

    def on_mount(self) -> None:
        self.set_interval(1, self.refresh)

    def row_id(self, row: RunRow) -> str:
        return row.run.run_id

    def badge(self, row: RunRow) -> str:
        return row.mark

    def title(self, column: Column[Any], width: int) -> str:
        if column is not self._order.column:
            return super().title(column, width)
        sign = FALLING if self._order.is_falling else RISING
        return laid(column.title + sign, width, column.align)

    def cell(self, column: Column[Any], row: RunRow, width: int) -> Cell:
        if column is SPARK:
            return Cell(_spark(row.figures.losses, width), "list--spark")
        return column.cell(row._replace(since_s=self._clock() - self._seen_at))

    def show(self, rows: Sequence[RunRow], order: Order, seen_at: float, why_empty: Sequence[str]) -> None:
        """Show `rows`, which are in `order`, as the store knew them at `seen_at` by the clock."""
        self._seen_at, self._order = seen_at, order
        self.show_rows(rows, why_empty)

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(RunOpened(self.selected.run.run_id))

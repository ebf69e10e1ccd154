"""The list of runs: a run a line, ages that count on between two looks at the store. Asks the store nothing.

What a column says stands in `run_columns`, how a list moves in `listing`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from dflash_tui.charts import spark
from dflash_tui.runs import Run
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.listing import Listing
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.run_columns import COLUMNS, SPARK, Figures, RunRow


class RunList(Listing[Run]):
    COLUMNS = COLUMNS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the dashboard of the run under the cursor."),
    ]

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen_at = clock()
        self._figures: Mapping[str, Figures] = {}

    def on_mount(self) -> None:
        self.set_interval(1, self.refresh)

    def row_id(self, row: Run) -> str:
        return row.run_id

    def cell(self, column: Column[Any], row: Run, width: int) -> Cell:
        figures = self._figures.get(row.run_id, Figures())
        if column is SPARK:
            return Cell(spark(figures.losses, width), "list--spark")
        return column.cell(RunRow(row, figures, self._clock() - self._seen_at))

    def show(self, runs: Sequence[Run], seen_at: float, why_empty: Sequence[str]) -> None:
        """Show `runs`, as the store knew them at `seen_at` by the clock; without any, the lines of `why_empty`."""
        self._seen_at = seen_at
        self.show_rows(runs, why_empty)

    def show_figures(self, figures: Mapping[str, Figures]) -> None:
        self._figures = figures
        self.refresh()

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(RunOpened(self.selected.run_id))

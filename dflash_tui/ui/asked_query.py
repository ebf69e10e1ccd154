"""One query of a person's on its way: read in a thread, watched and cancelled from the loop.

Owns what of its answer is kept, and how it is said to stand. Draws nothing.
"""

from collections.abc import Callable
from typing import Any

from dflash_tui.errors import DflashError, QueryError
from dflash_tui.store.base import Cancellable, Store
from dflash_tui.text import did_you_mean
from dflash_tui.ui import sql_text
from dflash_tui.ui.packed_rows import PackedRows
from dflash_tui.ui.sql_text import Statement

TIMEOUT_S = 600.0


class AskedQuery:
    """`read` belongs to one thread; everything else to the loop. `values` are what its `$names` may stand for."""

    def __init__(
        self, statement: Statement, values: Callable[[Store], dict[str, Any]], clock: Callable[[], float]
    ) -> None:
        self.statement = statement
        self.columns: list[str] = []
        self.types: list[str] = []
        self.rows = PackedRows()
        self.is_cut = False
        """There are more rows than are kept."""
        self.error: DflashError | None = None
        self.is_cancelled = False
        self.took_s: float | None = None
        """None while it runs."""
        self._values = values
        self._clock = clock
        self._began = clock()
        self._running: Cancellable | None = None

    @property
    def is_running(self) -> bool:
        return self.took_s is None

    @property
    def running_s(self) -> float:
        """Seconds so far, or in all."""
        return self._clock() - self._began if self.took_s is None else self.took_s

    def read(self, store: Store) -> None:
        """The answer, as far as it is kept. Blocking; raises DflashError."""
        # Another owner may be asked when the first has gone.
        rows = self.rows = PackedRows()
        values = self.bound(store)
        running = self._running = store.running_query()
        if self.is_cancelled:
            running.cancel()
        with running.start(self.statement.text, values, TIMEOUT_S) as answer:
            # The columns last: whoever sees them finds the rest.
            self.types, self.columns = answer.types, answer.columns
            for batch in answer.batches():
                if not rows.add(batch):
                    self.is_cut = True
                    return

    def bound(self, store: Store) -> dict[str, Any]:
        """What the statement asks for, and no more: DuckDB refuses that. Blocking; raises DflashError."""
        asked = sql_text.parameters(self.statement.text)
        values = self._values(store) if asked else {}
        for name in asked:
            if name.text not in values:
                known = did_you_mean(name.text, values) if values else "open a run (1), and $run is that run"
                raise QueryError(f"${name.text} has no value here; {known}", name.start + 1)
        return {name.text: values[name.text] for name in asked}

    def end(self, error: DflashError | None = None) -> None:
        self.took_s, self.error = self.running_s, error

    def cancel(self) -> None:
        """Again and again: one that comes between two steps of the engine is lost."""
        self.is_cancelled = True
        if self._running and self.is_running:
            self._running.cancel()

    def error_place(self) -> int | None:
        """Where in the text that the statement is of."""
        column = self.error.column if isinstance(self.error, QueryError) else None
        return None if column is None else self.statement.start + column - 1

"""What a query is about: the run that `$run` is, and over which of its steps the other parameters of a panel stand."""

from typing import Any, NamedTuple

from dflash_tui.runs import Stretches, Window
from dflash_tui.store.base import Store
from dflash_tui.store.parameters import parameters_of


class QuerySubject(NamedTuple):
    run: str | None = None
    """Its id."""
    window: Window = Window()
    stretches: Stretches | None = None
    """Two windows that are compared."""

    @property
    def words(self) -> str:
        if self.run is None:
            return "no run: $run has no value"
        two = " against ".join(map(str, self.stretches)) if self.stretches else ""
        return ", ".join(filter(None, [f"$run = {self.run}", str(self.window), two]))

    def values(
        self, store: Store, own: Window | None, buckets: int, length_edges: tuple[float, float]
    ) -> dict[str, Any]:
        """What `$names` stand for in a panel whose own window is `own`. Blocking; raises DflashError."""
        if self.run is None:
            return {}
        return parameters_of(store, self.run, self.window, own, buckets, length_edges, self.stretches)

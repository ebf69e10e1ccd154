"""The few figures that the list of runs shows of each run's rows, asked of the store in one query."""

from dflash_tui.store.base import Store
from dflash_tui.store.screens import ask_screen
from dflash_tui.ui.run_columns import Figures


def ask_figures(store: Store) -> dict[str, Figures]:
    """Figures by run id. Blocking; raises DflashError."""
    return {run: Figures(loss, speed, tuple(losses or ())) for run, loss, speed, losses in ask_screen(store, "runs")}

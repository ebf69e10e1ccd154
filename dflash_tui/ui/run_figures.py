"""The few figures that the list of runs shows of each run's rows, asked of the store in one query."""

from dflash_tui import paths
from dflash_tui.store.base import Store
from dflash_tui.ui.run_columns import Figures


def ask_figures(store: Store) -> dict[str, Figures]:
    """Figures by run id. Blocking; raises DflashError."""
    sql = (paths.bundled("sql") / "screens" / "runs.sql").read_text(encoding="utf-8")
    with store.query(sql, timeout_s=20) as answer:
        return {run: Figures(loss, speed, tuple(losses or ())) for run, loss, speed, losses in answer.rows()}

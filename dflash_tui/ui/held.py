"""What a panel is held against: the figures of a reference that belong into its chart, and the share it reached."""

from dflash_tui.charts import Level
from dflash_tui.charts.format import short
from dflash_tui.references import Reference
from dflash_tui.store.base import PanelResult
from dflash_tui.text import visible

# Panels that a reference may hold a figure of, and its key.
HELD = {
    "positions": "position_acc",
    "streak": "ddtree_streak8",
    "acceptance": "tau_linear_macro",
    "accept_len": "accept_len",
}
# Those that draw train rows: a reference is of decoding, or of an evaluation.
_OF_TRAINING = ("streak", "accept_len")


def held_against(result: PanelResult | None, reference: Reference | None) -> tuple[list[Level], dict[str, float]]:
    """A level for a line, or a target for each bar by its label; nothing where the reference has no such figure."""
    metric = HELD.get(result.name) if result else None
    if metric is None or reference is None or result is None or result.state != "rows":
        return [], {}
    if result.chart == "bars":
        return [], {stat: value for (name, stat), value in reference.figures.items() if name == metric}
    value = reference.figures.get((metric, "last"))
    if value is None:
        return [], {}
    at = result.columns.index(result.axes["y"])
    now = next((row[at] for row in reversed(result.rows) if isinstance(row[at], (int, float))), None)
    held = f"{visible(reference.name)} {short(value)}"
    if now is not None and value:
        # The share first: what comes last is cut where the panel is narrow.
        held = f"{now / value:.0%} of {held}" + " in training" * (result.name in _OF_TRAINING)
    return [Level(value, held)], {}

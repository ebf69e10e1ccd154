"""What a panel's SELECTs gave, checked against its header and put into a `PanelResult`: strict JSON, no opinions."""

from typing import Literal

from dflash_tui.store.base import PanelResult
from dflash_tui.store.cells import strict
from dflash_tui.store.panel_files import Panel
from dflash_tui.store.selects import Selected, SelectError, Statement, place
from dflash_tui.text import did_you_mean, numbered


def headline_of(panel: Panel, statement: Statement, found: Selected) -> str | None:
    """The one cell that a headline's SELECT gave, as text; SelectError if it gave more."""
    if len(found.columns) != 1 or len(found.rows) > 1:
        size = f"{numbered(len(found.rows), 'row')} of {numbered(len(found.columns), 'column')}"
        raise SelectError(f"{place(panel, statement.line)}: a headline is one cell, its SELECT gives {size}")
    value = found.rows[0][0] if found.rows else None
    return None if value is None else str(strict(value))


def with_nonfinite(headline: str | None, found: Selected) -> str | None:
    """The headline, and behind it how many values the rows leave out."""
    if "nonfinite" not in found.columns:
        return headline
    at = found.columns.index("nonfinite")
    num = sum(row[at] for row in found.rows if isinstance(row[at], int))
    return " · ".join(filter(None, (headline, f"{num:,} non-finite" if num else None))) or None


def check_columns(panel: Panel, statement: Statement, columns: list[str]) -> None:
    """SelectError unless the SELECT gave the columns that the header speaks of."""
    if panel.units is not None and len(panel.units) != len(columns):
        raise SelectError(
            f"{place(panel, statement.line)}: `units` has {len(panel.units)} entries, the SELECT gives"
            f" {len(columns)} columns: {', '.join(columns)}"
        )
    for option, column in panel.columns():
        if column not in columns:
            raise SelectError(
                f"{place(panel, statement.line)}: the chart's {option}={column} is no column of the SELECT:"
                f" {did_you_mean(column, columns)}"
            )


def has_something(panel: Panel, found: Selected) -> bool:
    """Whether a table has a row, and a chart a point."""
    values = [found.columns.index(column) for option, column in panel.columns() if option in ("y", "y2")]
    return any(not values or any(row[i] is not None for i in values) for row in found.rows)


def panel_result(
    panel: Panel,
    state: Literal["rows", "empty", "failed"],
    *,
    why: str | None = None,
    headline: str | None = None,
    found: Selected | None = None,
) -> PanelResult:
    """The panel's answer with all that its header says; `found` as strict JSON holds it."""
    columns, rows = found or ((), ())
    return PanelResult(
        name=panel.name,
        title=panel.title,
        chart=panel.chart,
        state=state,
        why=why,
        headline=headline,
        columns=list(columns),
        units=list(panel.units or [""] * len(columns)) if columns else [],
        rows=[[strict(value) for value in row] for row in rows],
        unit=panel.unit,
        scale=panel.scale,
        better=panel.better,
        order=panel.order,
        help=panel.help,
        axes=panel.axes,
    )

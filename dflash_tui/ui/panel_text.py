"""A panel's answer as plain values: text to copy, one figure out of a table. Draws nothing."""

from collections.abc import Iterable, Sequence

from dflash_tui.store.base import PanelResult


def as_tsv(result: PanelResult) -> str:
    """The rows as tab-separated lines under their columns; without rows, why there are none."""
    if result.state != "rows":
        return result.why or result.state
    return as_lines([result.columns, *(["" if cell is None else str(cell) for cell in row] for row in result.rows)])


def as_lines(rows: Iterable[Sequence[str]]) -> str:
    """A row a line, its cells between tabs."""
    return "\n".join("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells) for cells in rows)


def figure(result: PanelResult, name: str) -> float | None:
    """The value of the row called `name` in a table of figures, if it has one."""
    if result.state != "rows" or "value" not in result.columns:
        return None
    place = result.columns.index("value")
    values = (row[place] for row in result.rows if row[0] == name)
    return next((float(value) for value in values if isinstance(value, (int, float))), None)

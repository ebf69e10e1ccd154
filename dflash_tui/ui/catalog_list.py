"""The catalog on the screen: a table opens into its columns, a line each. What is chosen of it, its screen decides."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.message import Message

from dflash_tui.text import numbered, visible
from dflash_tui.ui.catalog import Catalog
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.listing import HEADER_LINES, Listing

_PANELS, _RUNS = "panels", "runs known"


class CatalogRow(NamedTuple):
    """`group` opens and closes; `insert` is what goes into a query; `panel` has SQL of its own."""

    row_id: str
    name: str
    kind: str = ""
    means: str = ""
    group: str | None = None
    is_open: bool = False
    insert: str | None = None
    panel: str | None = None


def _name(row: CatalogRow) -> Cell:
    if row.group is not None:
        return Cell(f"{'-' if row.is_open else '+'} {row.name}", "list--name")
    return Cell(f"  {row.name}")


class CatalogList(Listing[CatalogRow]):
    COLUMNS = (
        Column("TABLES, PANELS, RUNS", 14, _name, takes_rest=True),
        Column("TYPE", 8, lambda row: Cell(row.kind.lower(), "list--quiet"), rank=1),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "open", "choose", tooltip="Open a table; a column or a run goes into the query."),
        Binding("right,l", "fold(False)", "open", show=False, tooltip="Open the table under the cursor."),
        Binding("left,h", "fold(True)", "close", show=False, tooltip="Close the table that the cursor is in."),
    ]

    class Chosen(Message):
        def __init__(self, row: CatalogRow) -> None:
            super().__init__()
            self.row = row

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._catalog = Catalog()
        self._unfolded: set[str] = set()

    def show(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._show()

    def say(self, trouble: str) -> None:
        """Why there is nothing, unless there is something from before."""
        if not self._rows:
            self.show_rows((), (visible(trouble),))

    def _show(self) -> None:
        self.show_rows(list(self._lines()), ("reading ...",))

    def row_id(self, row: CatalogRow) -> str:
        return row.row_id

    def _lines(self) -> Iterator[CatalogRow]:
        catalog = self._catalog
        for table in catalog.tables:
            yield self._group(table.name, table.name, table.kind, table.means)
            if table.name in self._unfolded:
                for one in table.columns:
                    means = f"{one.means} ({one.unit})"
                    yield CatalogRow(f"{table.name}.{one.column}", one.column, one.type, means, insert=one.column)
        if catalog.panels:
            yield self._group(
                _PANELS, numbered(len(catalog.panels), "panel"), "sql", "Enter on one brings its SQL here."
            )
        if _PANELS in self._unfolded:
            for panel in catalog.panels:
                means = " ".join(panel.help.split())
                yield CatalogRow(f"panel {panel.name}", visible(panel.name), panel.chart, means, panel=panel.name)
        if catalog.runs:
            yield self._group(
                _RUNS, numbered(len(catalog.runs), "run"), "id", "Enter on one writes its id into the query."
            )
        if _RUNS in self._unfolded:
            for run in catalog.runs:
                yield CatalogRow(f"run {run.run_id}", visible(run.run_id), run.state, insert=f"'{run.run_id}'")

    def _group(self, group: str, name: str, kind: str, means: str) -> CatalogRow:
        return CatalogRow(f"group {group}", name, kind, means, group, group in self._unfolded)

    def action_open(self) -> None:
        row = self.selected
        if row is None:
            return
        if row.group is None:
            self.post_message(self.Chosen(row))
        else:
            self._unfolded ^= {row.group}
            self._show()
            self._bring_in_sight()

    def _bring_in_sight(self) -> None:
        """What is below the group under the cursor, as much as fits under it."""
        page = self.size.height - HEADER_LINES
        below = next(
            (n for n, one in enumerate(self._rows[self._index + 1 :]) if one.group is not None), len(self._rows)
        )
        top = min(self._index, self._index + below + 1 - page)
        if top > self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)

    def action_fold(self, is_closed: bool) -> None:
        row = self.selected
        if row is None:
            return
        if is_closed and row.group is None:
            above = next(one for one in reversed(self._rows[: self._rows.index(row)]) if one.group is not None)
            self._unfolded.discard(above.group or "")
            self.select(above.row_id)
        elif row.group is not None:
            self._unfolded = self._unfolded - {row.group} if is_closed else self._unfolded | {row.group}
        self._show()
        self._bring_in_sight()

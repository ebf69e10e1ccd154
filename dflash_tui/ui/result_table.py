"""The answer of a query as a table: of any number of rows only those in sight are looked at and drawn.

Owns the cursor, which is on one cell, and how wide columns are: as what was seen of them asks.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from dflash_tui.charts.cells import ELLIPSIS, text_width
from dflash_tui.output.values import is_number
from dflash_tui.store.base import Row
from dflash_tui.text import visible
from dflash_tui.ui.cells import laid, line
from dflash_tui.ui.result_cells import NULL, Shown, shown, whole
from dflash_tui.ui.rows_view import RowsView

HEADER_LINES = 1
_GAP = "  "
_WIDEST = 48
_WIDEST_IF_ALONE = 400


class ResultTable(RowsView, can_focus=True, inherit_bindings=False):
    """Shows what `show` was given; `grow` when there are more rows of the same."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--ground",
        "table--head",
        "table--count",
        "table--odd",
        "table--quiet",
        "table--row",
        "table--cursor",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False, tooltip="Down a row."),
        Binding("up,k", "move(-1)", "up", show=False, tooltip="Up a row."),
        Binding("right,l", "move_column(1)", "right", show=False, tooltip="To the next column."),
        Binding("left,h", "move_column(-1)", "left", show=False, tooltip="To the column before."),
        Binding("g,home", "move_to(0)", "first", show=False, tooltip="To the first row."),
        Binding("G,end", "move_to(-1)", "last", show=False, tooltip="To the last row."),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, tooltip="A page down."),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip="A page up."),
    ]

    class Moved(Message):
        """The cursor is on another cell, or other rows are in sight."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns: Sequence[str] = ()
        self._types: Sequence[str] = ()
        self._rows: Sequence[Row] = ()
        self._widths: list[int] = []
        self._measured = range(0)
        """Rows that the widths go by."""
        self._row = 0
        self.column = 0
        """The cursor's."""
        self._first_column = 0

    def show(self, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> None:
        """Another answer. The cursor goes to its first cell, but stays in a column of the same name."""
        before = self._columns[self.column] if self._columns else None
        self._columns, self._types, self._rows = columns, types, rows
        self._widths = [max(1, min(text_width(visible(name)), _WIDEST)) for name in columns]
        self._row = self._first_column = 0
        self._measured = range(0)
        self.column = columns.index(before) if before in columns else 0
        self.scroll_to(y=0, animate=False, force=True)
        self.grow()

    def grow(self) -> None:
        """There may be more rows than before."""
        self.virtual_size = Size(self.size.width, len(self._rows) + HEADER_LINES)
        self._widen()
        self.refresh()
        self.post_message(self.Moved())

    @property
    def in_sight(self) -> range:
        """The rows on the screen."""
        top = int(self.scroll_offset.y)
        return range(top, min(len(self._rows), top + max(1, self.size.height - HEADER_LINES)))

    def cell_words(self) -> tuple[str, str] | None:
        """The column under the cursor and the cell, whole; None where there is none."""
        if not self._rows or not self._columns:
            return None
        cell = self._rows[self._row][self.column]
        return self._columns[self.column], NULL if cell is None else whole(self._types[self.column], cell)

    def action_move(self, by: int) -> None:
        self.action_move_to(min(max(0, self._row + by), len(self._rows) - 1))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - HEADER_LINES - 1))

    def action_move_to(self, row: int) -> None:
        if self._rows:
            self._row = row % len(self._rows)
            page = max(1, self.size.height - HEADER_LINES)
            top = min(max(int(self.scroll_offset.y), self._row - page + 1), self._row)
            self.scroll_to(y=top, animate=False, force=True)
            self._moved()

    def action_move_column(self, by: int) -> None:
        if self._columns:
            self.column = min(max(0, self.column + by), len(self._columns) - 1)
            self._moved()

    def _moved(self) -> None:
        self._widen()
        self._first_column = min(self._first_column, self.column)
        while self._first_column < self.column and self.column not in dict(self._laid_out()):
            self._first_column += 1
        self.refresh()
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        row, left = int(self.scroll_offset.y) + event.y - HEADER_LINES, self._count_width
        for column, width in self._laid_out():
            left += len(_GAP) + width
            if event.x < left or column == self._laid_out()[-1][0]:
                self.column = column
                break
        if event.y >= HEADER_LINES and row < len(self._rows):
            self._row = row
        self._moved()

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self._widen()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + HEADER_LINES)
        self._moved()

    @property
    def _count_width(self) -> int:
        return len(f"{len(self._rows):,}")

    def _widen(self) -> None:
        """Columns become as wide as what is in sight asks, and stay so: nothing moves back and forth."""
        widest = _WIDEST if len(self._columns) > 1 else _WIDEST_IF_ALONE
        in_sight, measured = self.in_sight, self._measured
        self._measured = in_sight
        for index in (index for index in in_sight if index not in measured):
            for column, cell in enumerate(self._rows[index]):
                if self._widths[column] < widest:
                    width = text_width(shown(self._types[column], cell).text)
                    self._widths[column] = max(self._widths[column], min(width, widest))

    def _laid_out(self) -> list[tuple[int, int]]:
        """The columns in sight, from the first one on, and how wide each is; the last one may be cut."""
        left = self.size.width - self._count_width
        found: list[tuple[int, int]] = []
        for column in range(self._first_column, len(self._columns)):
            width = self._widths[column]
            left -= len(_GAP)
            # A number is shown whole or not at all.
            if left < (width if found or is_number(self._types[column]) else 1):
                break
            found.append((column, min(width, left)))
            left -= width
        return found or [(self._first_column, max(1, left))]

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.get_component_rich_style("table--ground")
        if not self._columns:
            return Strip.blank(width, ground)
        if y < HEADER_LINES:
            return self._head(ground)
        index = int(self.scroll_offset.y) + y - HEADER_LINES
        if index >= len(self._rows):
            return Strip.blank(width, ground)
        return self._row_line(index, ground)

    def _head(self, ground: Style) -> Strip:
        look = self._ink("table--head")
        pieces = [(" " * self._count_width, look)]
        columns = self._laid_out()
        for column, width in columns:
            title = laid(visible(self._columns[column]), width, self._align(column))
            word = title.strip()
            before, behind = title[: title.index(word)], title[title.index(word) + len(word) :]
            is_here = column == self.column and self.has_focus
            word_look = look + Style(bold=True, underline=True) if is_here else look
            pieces += [(_GAP + before, look), (word, word_look), (behind, look)]
        if columns[-1][0] < len(self._columns) - 1:
            pieces.append((f" {ELLIPSIS} {len(self._columns) - 1 - columns[-1][0]} more", look))
        return line(pieces, self.size.width, ground)

    def _align(self, column: int) -> Literal["left", "right"]:
        return "right" if is_number(self._types[column]) else "left"

    def _row_line(self, index: int, ground: Style) -> Strip:
        is_here = index == self._row
        row_look = self._cursor_ink("table--row") if is_here else Style()
        row = self._rows[index]
        pieces = [(laid(f"{index + 1:,}", self._count_width, "right"), self._ink("table--count") + row_look)]
        for column, width in self._laid_out():
            cell = shown(self._types[column], row[column])
            if is_here and column == self.column and self.has_focus:
                look = self._cursor_ink("table--cursor")
            else:
                look = row_look if row_look.reverse else self._cell_ink(cell) + row_look
            pieces += [(_GAP, row_look), (self._fitted(cell, column, width), look)]
        return line(pieces, self.size.width, ground + row_look)

    def _fitted(self, cell: Shown, column: int, width: int) -> str:
        # A number that lost a digit would be another number.
        is_cut_number = cell.look == "number" and text_width(cell.text) > width
        return laid(ELLIPSIS if is_cut_number else cell.text, width, self._align(column))

    def _cell_ink(self, cell: Shown) -> Style:
        return self._ink(f"table--{cell.look}" if cell.look in ("odd", "quiet") else "")

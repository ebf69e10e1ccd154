"""A list, one line a row: draws the rows in sight under their titles, keeps the cursor on its row as rows come and go.

Owns the cursor. What a row says stands in its columns; where rows come from is its screen's business.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from dflash_tui.charts.cells import text_width
from dflash_tui.ui.cells import laid, line
from dflash_tui.ui.columns import GAP, Cell, Column, R, fitted
from dflash_tui.ui.rows_view import RowsView
from dflash_tui.ui.states import TONE_CLASSES

HEADER_LINES = 1
CURSOR_CELLS = 2
AGEING_CELLS = 2


class Listing(RowsView, Generic[R], can_focus=True, inherit_bindings=False):
    """`COLUMNS` say what is drawn of a row."""

    COLUMNS: ClassVar[tuple[Column[Any], ...]] = ()
    BADGE_CELLS: ClassVar[int] = 0
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *TONE_CLASSES,
        "list--ground",
        "list--title",
        "list--name",
        "list--badge",
        "list--quiet",
        "list--spark",
        "list--cursor",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False, tooltip="Move the cursor down."),
        Binding("up,k", "move(-1)", "up", show=False, tooltip="Move the cursor up."),
        Binding("g,home", "move_to(0)", "first", show=False, tooltip="Move to the first line."),
        Binding("G,end", "move_to(-1)", "last", show=False, tooltip="Move to the last line."),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, tooltip="Move a page down."),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip="Move a page up."),
    ]

    class Moved(Message):
        """The cursor is on another row, or the row under it changed."""

    class TitleChosen(Message):
        """A person clicked on a column's title."""

        def __init__(self, column: Column[Any]) -> None:
            super().__init__()
            self.column = column

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[R] = ()
        self._index = 0
        self._row_id = ""
        """The row that the cursor is on, or goes to as soon as it is in the list."""
        self._why_empty: Sequence[str] = ()
        self._needs = tuple(column.width for column in self.COLUMNS)

    def row_id(self, row: R) -> str:
        """What makes it the same row next time."""
        raise NotImplementedError

    def cell(self, column: Column[Any], row: R, width: int) -> Cell:
        """What stands in a column of `width` cells."""
        return column.cell(row)

    def badge(self, row: R) -> str:
        """What stands before the columns, for what a person has done to the row."""
        return ""

    def title(self, column: Column[Any], width: int) -> str:
        """What stands over a column of `width` cells."""
        return laid(column.title, width, column.align)

    @property
    def rows(self) -> Sequence[R]:
        return self._rows

    @property
    def selected(self) -> R | None:
        """The row under the cursor."""
        return self._rows[self._index] if self._rows else None

    def show_rows(self, rows: Sequence[R], why_empty: Sequence[str]) -> None:
        """Without any row, the lines of `why_empty` are shown."""
        before = self.selected
        self._rows, self._why_empty = rows, why_empty
        self._needs = tuple(map(self._need, self.COLUMNS))
        places = {self.row_id(row): index for index, row in enumerate(rows)}
        self._index = places.get(self._row_id, min(self._index, max(0, len(rows) - 1)))
        self.virtual_size = Size(self.size.width, len(rows) + HEADER_LINES)
        self._follow_cursor()
        if before != self.selected:
            self.post_message(self.Moved())
        self.refresh()

    def select(self, row_id: str) -> None:
        """Put the cursor on a row, now or when it comes into the list."""
        self._row_id = row_id
        self.show_rows(self._rows, self._why_empty)

    def action_move(self, by: int) -> None:
        self.action_move_to(min(max(0, self._index + by), len(self._rows) - 1))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - HEADER_LINES - 1))

    def action_move_to(self, index: int) -> None:
        if self._rows:
            before, self._index = self._index, index % len(self._rows)
            self._row_id = self.row_id(self._rows[self._index])
            self._follow_cursor()
            self.refresh(self._place_of(before), self._place_of(self._index))
            self.post_message(self.Moved())

    def action_open(self) -> None:
        """What a double click does as well."""

    def on_click(self, event: events.Click) -> None:
        index = self.scroll_offset.y + event.y - HEADER_LINES
        if event.y < HEADER_LINES:
            if (column := self._column_at(event.x)) is not None:
                self.post_message(self.TitleChosen(column))
        elif 0 <= index < len(self._rows):
            self.action_move_to(index)
            if event.chain == 2:
                self.action_open()

    def _column_at(self, x: int) -> Column[Any] | None:
        end = CURSOR_CELLS + self.BADGE_CELLS
        for column, cells in self._fitted():
            end += cells + GAP
            if x < end:
                return column
        return None

    def _fitted(self) -> list[tuple[Column[Any], int]]:
        # One cell stays free for the scrollbar.
        return fitted(self.COLUMNS, self.size.width - CURSOR_CELLS - self.BADGE_CELLS - 1, self._needs)

    def _need(self, column: Column[Any]) -> int:
        """The cells that a column which may grow has use for; all but names hold ages, longer at the next look."""
        if not column.widest:
            return column.width
        widest = max((text_width(self.cell(column, row, column.widest).text) for row in self._rows), default=0)
        return widest + (0 if column.takes_rest else AGEING_CELLS)

    def _place_of(self, index: int) -> Region:
        return Region(0, index - self.scroll_offset.y + HEADER_LINES, self.size.width, 1)

    def _follow_cursor(self) -> None:
        page = max(1, self.size.height - HEADER_LINES)
        top = min(max(self.scroll_offset.y, self._index - page + 1), self._index)
        # Forced: just after the first rows came there is no scrollbar yet, and nothing would move.
        self.scroll_to(y=top, animate=False, force=True)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + HEADER_LINES)
        self._follow_cursor()

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.get_component_rich_style("list--ground")
        if not self._rows:
            return self._empty_line(y, ground)
        if y < HEADER_LINES:
            titles = " ".join(self.title(column, cells) for column, cells in self._fitted())
            before = " " * (CURSOR_CELLS + self.BADGE_CELLS)
            return line([(before + titles, self._ink("list--title"))], width, ground)
        index = self.scroll_offset.y + y - HEADER_LINES
        if index >= len(self._rows):
            return Strip.blank(width, ground)
        return self._row_line(self._rows[index], index == self._index, ground)

    def _row_line(self, row: R, is_under_cursor: bool, ground: Style) -> Strip:
        cursor = self._cursor_ink("list--cursor") if is_under_cursor else Style()

        def inked(look: str) -> Style:
            # Reversed, colours would be grounds of different greys.
            return cursor if cursor.reverse else self._ink(look) + cursor

        sign, badge = "▸" if is_under_cursor else " ", laid(self.badge(row), self.BADGE_CELLS)
        pieces = [(sign, cursor), (badge, inked("list--badge")), (" ", cursor)] if badge else [(sign + " ", cursor)]
        for column, cells in self._fitted():
            text, look = self.cell(column, row, cells)
            pieces += [(laid(text, cells, column.align), inked(look)), (" " * GAP, cursor)]
        return line(pieces, self.size.width, ground + cursor)

    def _empty_line(self, y: int, ground: Style) -> Strip:
        lines = self._why_empty
        top = max(0, (self.size.height - len(lines)) // 2)
        text = lines[y - top] if 0 <= y - top < len(lines) else ""
        widest = max(map(len, lines), default=0)
        indent = " " * max(0, (self.size.width - widest) // 2)
        look = self._ink("list--name" if y == top else "list--quiet")
        return line([(indent + text, look)], self.size.width, ground)

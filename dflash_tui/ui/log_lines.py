"""The rows of a log in sight, a cursor on one of them. Reads nothing: rows that are not here yet are wanted.

Owns the look of a row. Which row is which line is the transcript's to say; where rows come from, the screen's.
"""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from dflash_tui.charts.cells import fit, text_width
from dflash_tui.store.log_words import Words
from dflash_tui.store.transcript import Line
from dflash_tui.ui.cells import line
from dflash_tui.ui.rows_view import RowsView
from dflash_tui.ui.states import TONE_CLASSES

# The numbers of lines give way to what stands there.
NUMBERED_CELLS = 64
_KEY = re.compile(r'"[\w./@ -]{1,60}":')
_LAST = 1 << 60


class LogLines(RowsView, can_focus=True, inherit_bindings=False):
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *TONE_CLASSES,
        "log--ground",
        "log--number",
        "log--key",
        "log--void",
        "log--note",
        "log--found",
        "log--cursor",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False, tooltip="A line down."),
        Binding("up,k", "move(-1)", "up", show=False, tooltip="A line up; it ends following."),
        Binding("g,home", f"move(-{_LAST})", "top", show=False, tooltip="To the first line."),
        Binding("pagedown,ctrl+d,space", "page(1)", "page down", show=False, tooltip="A page down."),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip="A page up."),
        Binding("right,l", "shift(1)", "right", show=False, tooltip="Further to the right in long lines."),
        Binding("left,h", "shift(-1)", "left", show=False, tooltip="Back to the left."),
    ]

    class Moved(Message):
        """The cursor is on another row, or what stands there came."""

        def __init__(self, is_by_hand: bool) -> None:
            super().__init__()
            self.is_by_hand = is_by_hand

    class Wanted(Message):
        """Rows in sight are not here."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LogLines.Wanted)

    def __init__(self) -> None:
        super().__init__()
        self.num_rows = 0
        self.cursor = 0
        self.words: Words | None = None
        """What is shown as found."""
        self._rows: dict[int, Line] = {}
        self._shift = 0
        self._number_cells = 0
        self._why_empty: Sequence[str] = ()

    @property
    def selected(self) -> Line | None:
        """The row under the cursor, if it is here."""
        return self._rows.get(self.cursor)

    @property
    def wanted(self) -> range:
        """The rows in sight and a page around them, if one in sight is not here."""
        page = max(1, self.size.height)
        top = min(self.scroll_offset.y, max(0, self.num_rows - page))
        in_sight = range(top, min(top + page, self.num_rows))
        if all(row in self._rows for row in in_sight):
            return range(0)
        return range(max(0, top - page), min(top + 2 * page, self.num_rows))

    def show(self, num_rows: int, cursor: int, rows: Iterable[tuple[int, Line]], why_empty: Sequence[str]) -> None:
        """Another set of rows, some of which are here, and where the cursor is in it; it stays where it is in sight."""
        below = self.cursor - self.scroll_offset.y if self.num_rows else self.size.height // 2
        before = self.selected
        self._rows, self._why_empty = dict(rows), why_empty
        self.num_rows, self.cursor = num_rows, min(max(0, cursor), max(0, num_rows - 1))
        highest = max((row.line_no for row in self._rows.values()), default=0)
        self._number_cells = max(self._number_cells, len(f"{highest:,}")) if num_rows else 0
        self.virtual_size = Size(self.size.width, num_rows)
        self._scroll_to_cursor(self.cursor - below)
        if before != self.selected:
            self.post_message(self.Moved(is_by_hand=False))
        self.refresh()

    def put(self, rows: Iterable[tuple[int, Line]]) -> None:
        """Rows that were wanted."""
        self._rows.update(rows)
        self.post_message(self.Moved(is_by_hand=False))
        self.refresh()

    def move_to(self, row: int, *, is_by_hand: bool = True) -> None:
        """Put the cursor on `row`: in the middle of the page, if it is out of sight now."""
        page = max(1, self.size.height)
        top = self.scroll_offset.y
        self.cursor = min(max(0, row), max(0, self.num_rows - 1))
        is_near = top - page // 2 <= self.cursor <= top + page + page // 2
        self._scroll_to_cursor(top if is_near else self.cursor - page // 2)
        self.post_message(self.Moved(is_by_hand))
        self.refresh()

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.size.height - 1))

    def action_shift(self, by: int) -> None:
        self._shift = max(0, self._shift + by * max(8, self.size.width // 3))
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        self.move_to(self.scroll_offset.y + event.y)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, self.num_rows)
        self._scroll_to_cursor(self.scroll_offset.y)

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.post_message(self.Wanted())

    def _scroll_to_cursor(self, top: int) -> None:
        page = max(1, self.size.height)
        top = min(max(top, self.cursor - page + 1), self.cursor)
        self.scroll_to(y=min(max(0, top), max(0, self.num_rows - page)), animate=False, force=True)
        self.post_message(self.Wanted())

    def render_line(self, y: int) -> Strip:
        width, ground = self.scrollable_content_region.width, self.get_component_rich_style("log--ground")
        if not self.num_rows:
            top = max(0, (self.size.height - len(self._why_empty)) // 2)
            words = self._why_empty[y - top] if 0 <= y - top < len(self._why_empty) else ""
            return line([("  " + words, self._ink("log--number" if y > top else ""))], width, ground)
        number = self.scroll_offset.y + y
        if number >= self.num_rows:
            return Strip.blank(width, ground)
        cursor = self._cursor_ink("log--cursor") if number == self.cursor else Style()
        sign = ("▸" if number == self.cursor else " ", cursor)
        row = self._rows.get(number)
        pieces = [] if row is None else self._note(row) if row.kind == "note" else self._line(row)
        # Reversed, colours would be grounds of different greys.
        shown = [
            (text, cursor if cursor.reverse else style if style.reverse else style + cursor) for text, style in pieces
        ]
        return line([sign, *shown], width, ground + cursor)

    def _note(self, row: Line) -> list[tuple[str, Style]]:
        width = self.scrollable_content_region.width - 1
        words = fit(f"── {row.text} ", width)
        return [(words + "─" * max(0, width - text_width(words)), self._ink("log--note"))]

    def _line(self, row: Line) -> list[tuple[str, Style]]:
        pieces: list[tuple[str, Style]] = []
        width = self.scrollable_content_region.width
        if width >= NUMBERED_CELLS:
            pieces.append((f"{row.line_no:>{self._number_cells},} ", self._ink("log--number")))
        signs = {"reject": ("✗ ", "tone--bad"), "void": ("┆ ", "log--void")}
        sign, look = signs.get(row.kind, ("↻ ", "log--number") if row.num_over else ("  ", ""))
        pieces.append((sign, self._ink(look)))
        if row.reason:
            pieces.append((f"{row.reason} │ ", self._ink("tone--bad")))
        if row.is_cut:
            pieces.append((f"[{row.size:,} bytes, cut] ", self._ink("tone--warn")))
        room = max(0, width - 1 - sum(text_width(text) for text, _ in pieces))
        text = fit(row.text[self._shift : self._shift + 2 * room + 2], room)
        return pieces + self._inked(text, self._ink("log--void" if row.kind == "void" else ""))

    def _inked(self, text: str, plain: Style) -> list[tuple[str, Style]]:
        """`text` with what was looked for made to stand out, and the names of its figures stepping back."""
        # On a ground of its own: letters in the cursor's are hard to read on it.
        ground = self.get_component_rich_style("log--ground").bgcolor
        found = self._ink("log--found") + Style(bgcolor=ground, reverse=True)
        looks = [(place.start, place.stop, found) for place in (self.words.places(text) if self.words else ())]
        if not looks:
            looks = [(*match.span(), self._ink("log--key")) for match in _KEY.finditer(text)]
        pieces: list[tuple[str, Style]] = []
        at = 0
        for begin, end, look in looks:
            pieces += [(text[at:begin], plain), (text[begin:end], look)]
            at = end
        return [*pieces, (text[at:], plain)]

"""The list of runs: draws the rows in sight, keeps the cursor on its run while rows come and go.

Owns the cursor. Asks the store nothing; what a column says stands in `run_columns`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dflash_tui.charts import spark
from dflash_tui.runs import Run
from dflash_tui.ui.cells import ink, laid, line
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.run_columns import SPARK, Figures, RunRow, fitted
from dflash_tui.ui.states import TONE_CLASSES

HEADER_LINES = 1


class RunList(ScrollView, can_focus=True, inherit_bindings=False):
    """Runs, one a line, under a line of titles that stays."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *TONE_CLASSES,
        "runs--ground",
        "runs--title",
        "runs--name",
        "runs--quiet",
        "runs--spark",
        "runs--cursor",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the dashboard of the run under the cursor."),
        Binding("down,j", "move(1)", "down", show=False, tooltip="Move the cursor down."),
        Binding("up,k", "move(-1)", "up", show=False, tooltip="Move the cursor up."),
        Binding("g,home", "move_to(0)", "first", show=False, tooltip="Move to the first run."),
        Binding("G,end", "move_to(-1)", "last", show=False, tooltip="Move to the last run."),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, tooltip="Move a page down."),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip="Move a page up."),
    ]

    class Moved(Message):
        """The cursor is on another run, or the run under it changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen_at = clock()
        self._runs: Sequence[Run] = ()
        self._figures: Mapping[str, Figures] = {}
        self._index = 0
        self._run_id = ""
        """The run that the cursor is on, or goes to as soon as it is in the list."""
        self._why_empty: Sequence[str] = ()

    def on_mount(self) -> None:
        self.set_interval(1, self.refresh)

    @property
    def selected(self) -> Run | None:
        """The run under the cursor."""
        return self._runs[self._index] if self._runs else None

    def show(self, runs: Sequence[Run], seen_at: float, why_empty: Sequence[str]) -> None:
        """Show `runs`, as the store knew them at `seen_at` by the clock; without any, the lines of `why_empty`."""
        before = self.selected
        self._runs, self._seen_at, self._why_empty = runs, seen_at, why_empty
        places = {run.run_id: index for index, run in enumerate(runs)}
        self._index = places.get(self._run_id, min(self._index, max(0, len(runs) - 1)))
        self.virtual_size = Size(self.size.width, len(runs) + HEADER_LINES)
        self._follow_cursor()
        if before != self.selected:
            self.post_message(self.Moved())
        self.refresh()

    def show_figures(self, figures: Mapping[str, Figures]) -> None:
        self._figures = figures
        self.refresh()

    def select(self, run_id: str) -> None:
        """Put the cursor on a run, now or when it comes into the list."""
        self._run_id = run_id
        self.show(self._runs, self._seen_at, self._why_empty)

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(RunOpened(self.selected.run_id))

    def action_move(self, by: int) -> None:
        self.action_move_to(min(max(0, self._index + by), len(self._runs) - 1))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - HEADER_LINES - 1))

    def action_move_to(self, index: int) -> None:
        if self._runs:
            before, self._index = self._index, index % len(self._runs)
            self._run_id = self._runs[self._index].run_id
            self._follow_cursor()
            self.refresh(self._place_of(before), self._place_of(self._index))
            self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        index = self.scroll_offset.y + event.y - HEADER_LINES
        if event.y >= HEADER_LINES and 0 <= index < len(self._runs):
            self.action_move_to(index)
            if event.chain == 2:
                self.action_open()

    def _place_of(self, index: int) -> Region:
        return Region(0, index - self.scroll_offset.y + HEADER_LINES, self.size.width, 1)

    def _follow_cursor(self) -> None:
        page = max(1, self.size.height - HEADER_LINES)
        top = min(max(self.scroll_offset.y, self._index - page + 1), self._index)
        # Forced: just after the first rows came there is no scrollbar yet, and nothing would move.
        self.scroll_to(y=top, animate=False, force=True)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._runs) + HEADER_LINES)
        self._follow_cursor()

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.get_component_rich_style("runs--ground")
        if not self._runs:
            return self._empty_line(y, ground)
        if y < HEADER_LINES:
            titles = " ".join(laid(column.title, cells, column.align) for column, cells in fitted(width - 3))
            return line([("  " + titles, ink(self, "runs--title"))], width, ground)
        index = self.scroll_offset.y + y - HEADER_LINES
        if index >= len(self._runs):
            return Strip.blank(width, ground)
        return self._run_line(self._runs[index], index == self._index, ground)

    def _run_line(self, run: Run, is_under_cursor: bool, ground: Style) -> Strip:
        row = RunRow(run, self._figures.get(run.run_id, Figures()), self._clock() - self._seen_at)
        cursor = Style()
        if is_under_cursor:
            style = self.get_component_rich_style("runs--cursor")
            cursor = Style(bgcolor=style.bgcolor, bold=style.bold, reverse=style.reverse)
        pieces = [("▸ " if is_under_cursor else "  ", cursor)]
        for column, cells in fitted(self.size.width - 3):
            if column is SPARK:
                text, look = spark(row.figures.losses, cells), "runs--spark"
            else:
                text, look = column.cell(row)
            # Reversed, colours would be grounds of different greys.
            style = cursor if cursor.reverse else ink(self, look) + cursor
            pieces += [(laid(text, cells, column.align), style), (" ", cursor)]
        return line(pieces, self.size.width, ground + cursor)

    def _empty_line(self, y: int, ground: Style) -> Strip:
        lines = self._why_empty
        top = max(0, (self.size.height - len(lines)) // 2)
        text = lines[y - top] if 0 <= y - top < len(lines) else ""
        widest = max(map(len, lines), default=0)
        indent = " " * max(0, (self.size.width - widest) // 2)
        look = ink(self, "runs--name" if y == top else "runs--quiet")
        return line([(indent + text, look)], self.size.width, ground)

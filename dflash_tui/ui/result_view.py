"""The lower half of the Query screen: how the answer stands, and the answer as a table or as a chart.

Owns which of them is shown. Asks nothing: it is given a query, and told when there is more of its answer.
"""

import asyncio

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from dflash_tui.errors import DflashError
from dflash_tui.store.base import PanelResult
from dflash_tui.text import duration, numbered, visible
from dflash_tui.ui import sql_text
from dflash_tui.ui.asked_query import AskedQuery
from dflash_tui.ui.packed_rows import PackedRows
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.query_chart import VIEWS, View, chart_of
from dflash_tui.ui.result_table import ResultTable

HINT = "ctrl+r runs the statement under the cursor · tab takes a name that is offered"
_MOST_CELL = 120


class ResultView(Vertical):
    """Shows the query that `show` was given last."""

    class Unable(Message):
        """There is no such chart of this answer; `why` says it."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(self) -> None:
        super().__init__()
        self.view: View = "table"
        self._asked: AskedQuery | None = None
        self._text = ""
        self._shown: PackedRows | None = None
        """The rows in the table; others, when another owner of the store was asked anew."""
        self._title = Static(HINT, classes="title-line")
        self._message = Static(classes="query-message")
        self.table = ResultTable("result-table")
        self._chart = Panel("result")

    def compose(self) -> ComposeResult:
        yield from (self._title, self._message, self.table, self._chart)

    def on_mount(self) -> None:
        self._message.display = self._chart.display = False

    @property
    def asked(self) -> AskedQuery | None:
        return self._asked

    @property
    def drawn(self) -> PanelResult | None:
        """What the chart draws, if one is shown."""
        return self._chart.result if self.view != "table" else None

    def focus_on(self) -> None:
        (self._chart if self._chart.display else self.table).focus()

    def show(self, asked: AskedQuery, text: str) -> None:
        """Another query, of the text `text`: what was shown of the one before goes."""
        self._asked, self._text, self._shown = asked, text, None
        self._message.display = False
        self.table.show((), (), ())
        self._switch("table")
        self.show_progress()

    def show_progress(self) -> None:
        """There may be more of its answer, or it has ended."""
        asked = self._asked
        if asked is None:
            return
        if self._shown is not asked.rows and asked.columns and not asked.error:
            self._shown = asked.rows
            self.table.show(asked.columns, asked.types, asked.rows)
        elif self._shown is not None:
            self.table.grow()
        self._show_error()
        self._show_title()

    def on_resize(self) -> None:
        # The excerpt is cut to the width.
        self._show_error()

    def _show_error(self) -> None:
        asked = self._asked
        if asked is not None and asked.error is not None:
            self._message.update(Content("\n").join(map(Content, self._error_lines(asked, asked.error))))
            self._message.display = True

    def _error_lines(self, asked: AskedQuery, error: DflashError) -> list[str]:
        """The sentence; under it the line that it is about, with a caret under each letter of the word."""
        place = asked.error_place()
        if place is None:
            return [f"✗ {visible(str(error))}"]
        row, column = sql_text.line_and_column(self._text, place)
        number = f"{row + 1} "
        line, carets = sql_text.pointed_at(self._text, place, max(20, self.size.width - 2 - len(number)))
        return [
            f"✗ line {row + 1}, column {column + 1}: {visible(str(error))}",
            number + line,
            " " * len(number) + carets,
        ]

    @on(ResultTable.Moved)
    def _show_title(self) -> None:
        asked = self._asked
        if asked is not None:
            self._title.update(Content(visible(" · ".join(filter(None, self._title_parts(asked))))), layout=False)

    def _title_parts(self, asked: AskedQuery) -> list[str]:
        num = len(asked.rows)
        took = f"{asked.running_s:.2f} s" if asked.running_s < 10 else duration(asked.running_s)
        if asked.is_running:
            doing = "cancelling" if asked.is_cancelled else "running"
            return [f"{doing} {took}", f"{numbered(num, 'row')} so far" if num else "", "esc cancels"]
        if asked.error is not None:
            return ["no answer" if not num else f"the first {numbered(num, 'row')} came", took]
        if not num:
            return ["no rows", took]
        seen = self.table.in_sight
        rows = numbered(num, "row")
        if self.view == "table":
            rows = f"{seen.start + 1:,}-{seen.stop:,} of {rows}"
        if asked.is_cut:
            rows = f"{rows} kept, there are more: w writes all"
        cell = self.table.cell_words() if self.view == "table" else None
        here = f"{cell[0]} = {cell[1][:_MOST_CELL]}" if cell else ""
        return [rows, took, here or (self._chart.result.headline or "" if self._chart.result else "")]

    async def next_view(self) -> None:
        """The answer as the next chart that can be made of it; after the last one the table again."""
        asked = self._asked
        if asked is None or asked.is_running or not len(asked.rows):
            self.post_message(self.Unable("there is no answer to draw yet: ctrl+r runs the query"))
            return
        why = ""
        for step in range(1, len(VIEWS)):
            view = VIEWS[(VIEWS.index(self.view) + step) % len(VIEWS)]
            if view == "table":
                break
            buckets = max(40, self.size.width)
            column = self.table.column
            found = await asyncio.to_thread(chart_of, view, asked.columns, asked.types, asked.rows, column, buckets)
            if isinstance(found, PanelResult):
                self._chart.show(found)
                self._switch(view)
                return
            why = why or found
        if self.view == "table":
            self.post_message(self.Unable(f"no chart: {why}"))
        self._switch("table")

    def toggle_log(self) -> None:
        if self._chart.display and self._chart.has_scale:
            self._chart.toggle_log()

    def _switch(self, view: View) -> None:
        had_focus = self.has_focus_within
        self.view = view
        self.table.display, self._chart.display = view == "table", view != "table"
        if had_focus:
            self.focus_on()
        self._show_title()

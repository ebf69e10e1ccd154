"""The Query screen: SQL of a person's own over the store, its answer as a table or a chart, a file, a panel.

Owns the keys, and which query runs: one at a time. The store is asked in threads; the guard is that of `query`.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePath
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.store.base import Cancellable
from dflash_tui.store.parameters import NAMES
from dflash_tui.text import duration, numbered, visible
from dflash_tui.ui import query_keeping
from dflash_tui.ui.asked_query import AskedQuery
from dflash_tui.ui.catalog import Catalog, read_catalog
from dflash_tui.ui.catalog_list import CatalogList
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.completion import Completion, complete
from dflash_tui.ui.completion_popup import CompletionPopup
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.messages import QueryAsked, QueryLeft, RunAdvanced
from dflash_tui.ui.panel_text import as_tsv
from dflash_tui.ui.query_dialogs import file_of, file_prompt, panel_prompt
from dflash_tui.ui.query_history import QueryHistory
from dflash_tui.ui.query_subject import QuerySubject
from dflash_tui.ui.result_view import ResultView
from dflash_tui.ui.screen import MainScreen, tell
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.sql_editor import SqlEditor
from dflash_tui.ui.sql_text import Statement

STARTER = "select step, loss, accuracy, grad_norm\nfrom steps where run = $run\norder by step desc limit 100"
STARTER_ANY = "select run, count(*) as n, max(step) as last_step\nfrom steps group by run order by n desc"
BACK = "Cancel what runs; else from the tables into the editor, on to the answer, then to the screen before."
TICK_S = 0.25
# Whoever waited longer may look elsewhere: the end rings.
PATIENCE_S = 10.0


class QueryScreen(MainScreen):
    CSS_PATH: ClassVar[list[str | PurePath]] = ["panel.tcss", "query.tcss"]
    TITLE = "Query"
    AUTO_FOCUS = "#sql"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+r,f5,ctrl+enter", "run", "run", tooltip="Run what is selected, else the statement under the cursor."
        ),
        Binding(
            "enter", "whole", "cell", show=False, tooltip="The cell under the cursor in full: a text, JSON, a plan."
        ),
        Binding("i", "edit", "edit", tooltip="Back into the editor, from the answer or the tables; as shift+tab, tab."),
        Binding("c,f8", "view", "chart", tooltip="The answer as a line, bars, a histogram, and as a table again."),
        Binding("w,f9", "write", "file", tooltip="Write the whole answer into a file: csv, parquet, json, md ..."),
        Binding("ctrl+s", "save", "panel", tooltip="Save the query as a panel of your own."),
        Binding("y", "copy", "copy", tooltip="Copy the cell under the cursor; of a chart, its numbers."),
        Binding("Y", "copy_all", "copy all", show=False, tooltip="Copy all rows, as tab-separated lines."),
        Binding("o", "log_scale", "log", show=False, tooltip="Logarithmic axis of the chart, or linear again."),
        Binding("ctrl+up,alt+up", "history(-1)", "before", show=False, tooltip="The query that was run before."),
        Binding("ctrl+down,alt+down", "history(1)", "after", show=False, tooltip="The query that was run after it."),
        Binding("f2", "catalog", "tables", tooltip="Show or hide the tables, their columns, the panels and the runs."),
        Binding("escape", "back", "back", tooltip=BACK),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self._clock = clock
        self._subject = QuerySubject()
        self._catalog = Catalog()
        self._freshener = Freshener(self._read_catalog)
        self._history: QueryHistory | None = None
        self._to_edit: str | None = None
        self._writing: Cancellable | None = None
        self._title = Static(classes="title-line")
        self._list = CatalogList()
        self._means = Static(id="means")
        self._popup = CompletionPopup()
        self._editor = SqlEditor(self._popup, self._completion, id="sql")
        self._view = ResultView()

    def body(self) -> Iterator[Widget]:
        yield self._title
        with Horizontal():
            with Vertical(id="catalog"):
                yield self._list
                yield self._means
            with Vertical():
                yield self._editor
                yield self._view
        yield self._popup

    def on_mount(self) -> None:
        self._history = QueryHistory()
        newest = self._history.queries[-1:]
        if self._to_edit is None:
            self._editor.write(newest[0] if newest else STARTER if self._subject.run else STARTER_ANY)
        else:
            self._begin_edit()
        self.set_interval(TICK_S, self._tick)
        self.run_worker(self._freshener.run(), group="catalog", exit_on_error=False)
        self._show_title()

    def on_unmount(self) -> None:
        self._cancel()

    @property
    def subject(self) -> Run | None:
        """None: what a query tells may be of any run."""
        return None

    @property
    def subject_id(self) -> str | None:
        return self._subject.run

    def open(self, run_id: str | None) -> None:
        """Whoever comes here types, wherever the focus was left."""
        self.about(run_id)
        if self.is_running:
            self._editor.focus()

    def about(self, run_id: str | None) -> None:
        """`$run` is this one from now on, unless it is already."""
        if run_id is not None and run_id != self._subject.run:
            self._subject = QuerySubject(run_id)
        self._show_title()

    def edit(self, asked: QueryAsked) -> None:
        """Have its SQL to edit, and its answer; the parameters are those that the panel had."""
        self._subject, self._to_edit = asked.subject, asked.sql
        self._show_title()
        if self.is_running:
            self._begin_edit()

    def _begin_edit(self) -> None:
        assert self._to_edit is not None
        self._editor.write(self._to_edit)
        statement = self._editor.statement
        if statement is not None and self._under_way is None:
            if self._view.size.width:
                self._start(statement)
            else:
                # Of a screen that only comes up, the width is not known yet.
                self.call_after_refresh(self._start, statement)
        # Last: an answer that is emptied keeps the focus if it had it.
        self._editor.focus()

    def _show_title(self) -> None:
        self._title.update(Content(visible(f"Query · {self._subject.words}")), layout=False)

    @on(events.ScreenResume)
    def _looked_at(self) -> None:
        self._freshener.mark()

    def on_run_advanced(self, event: RunAdvanced) -> None:
        if event.run_id is None:
            self._freshener.mark()

    async def _read_catalog(self) -> None:
        try:
            self._catalog = await self.seat.ask(read_catalog)
        except DflashError as e:
            self._list.say(str(e))
            return
        self._list.show(self._catalog)
        if self._subject.run is None and self._catalog.runs:
            self.about(self._catalog.runs[0].run_id)

    def _completion(self, before: str, after: str) -> Completion:
        return complete(before, after, self._catalog, NAMES if self._subject.run else ())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("stop", "resume") and not (action == "edit" and self._editor.has_focus)

    @property
    def _under_way(self) -> AskedQuery | None:
        asked = self._view.asked
        return asked if asked is not None and asked.is_running else None

    def action_run(self) -> None:
        statement = self._editor.selected or self._editor.statement
        if self._under_way:
            tell(self, "a query runs already: esc cancels it", "warning")
        elif statement is None:
            tell(self, "there is no query yet: write one, or F2 and Enter on a panel bring one", "warning")
        else:
            self._remember(statement.text)
            self._start(statement)

    def _start(self, statement: Statement) -> None:
        # As in a panel, whose own window stands in the head of its text.
        own, edges = query_keeping.window_in(self._editor.text), self.seat.config.panels.length_edges
        subject, buckets = self._subject, 2 * self._view.size.width
        asked = AskedQuery(statement, lambda store: subject.values(store, own, buckets, edges), self._clock)
        self._editor.mark_wrong(None)
        self._view.show(asked, self._editor.text)
        self.run_worker(self._ask(asked), group="query", exit_on_error=False)

    async def _ask(self, asked: AskedQuery) -> None:
        try:
            await self.seat.ask(asked.read)
        except DflashError as e:
            asked.end(e)
            self._editor.mark_wrong(asked.error_place())
        else:
            asked.end()
        self._view.show_progress()
        if asked.running_s > PATIENCE_S and not asked.is_cancelled:
            self.app.bell()
            if not self.is_looked_at:
                tell(self, f"the query has ended after {duration(asked.running_s)}: 4 shows its answer")

    def _remember(self, sql: str) -> None:
        assert self._history is not None
        try:
            self._history.add(sql)
        except (OSError, DflashError) as e:
            tell(self, f"the history of queries is not kept: {e}", "warning")

    def _tick(self) -> None:
        if asked := self._under_way:
            if asked.is_cancelled:
                asked.cancel()
            self._view.show_progress()

    def _cancel(self) -> bool:
        """Whether there was something to cancel."""
        asked, writing = self._under_way, self._writing
        if asked:
            asked.cancel()
            self._view.show_progress()
        if writing:
            writing.cancel()
        return bool(asked or writing)

    def action_back(self) -> None:
        if self._cancel():
            return
        if self._editor.has_focus:
            self._view.focus_on()
        elif self._list.has_focus:
            self._editor.focus()
        else:
            self.post_message(QueryLeft())

    def action_edit(self) -> None:
        self._editor.focus()

    def action_history(self, by: int) -> None:
        assert self._history is not None
        if (query := self._history.step(by, self._editor.text)) is not None:
            self._editor.write(query)

    async def action_view(self) -> None:
        await self._view.next_view()

    @on(ResultView.Unable)
    def _no_chart(self, event: ResultView.Unable) -> None:
        tell(self, event.why, "warning")

    def action_log_scale(self) -> None:
        self._view.toggle_log()

    def action_whole(self) -> None:
        from dflash_tui.ui.whole_screen import WholeScreen

        if cell := self._view.table.cell_words():
            self.app.push_screen(WholeScreen(cell[1], visible(cell[0]), f"the cell of {cell[0]}"))

    def action_copy(self) -> None:
        if self._view.drawn is not None:
            copy(self, as_tsv(self._view.drawn), "the numbers of the chart")
        elif cell := self._view.table.cell_words():
            copy(self, cell[1], f"the cell of {cell[0]}")

    async def action_copy_all(self) -> None:
        if (asked := self._view.asked) and (num := len(asked.rows)):
            first = "" if num <= query_keeping.MOST_COPIED else f"the first {query_keeping.MOST_COPIED:,} of "
            copy(self, await asyncio.to_thread(query_keeping.rows_as_tsv, asked), f"{first}{num:,} rows")

    def action_catalog(self) -> None:
        is_shown = not self.query_one("#catalog").display
        self.set_class(is_shown, "-catalog")
        self.set_class(not is_shown, "-no-catalog")
        (self._list if is_shown else self._editor).focus()

    @on(CatalogList.Moved)
    def _say_meaning(self) -> None:
        row = self._list.selected
        self._means.update(Content(visible(row.means) if row else ""), layout=False)

    @on(CatalogList.Chosen)
    def _chosen(self, event: CatalogList.Chosen) -> None:
        if event.row.panel is not None:
            panel = next(panel for panel in self._catalog.panels if panel.name == event.row.panel)
            self._editor.write(panel.sql)
        elif event.row.insert is not None:
            self._editor.insert(event.row.insert)
        self._editor.focus()

    def action_write(self) -> None:
        if self._view.asked is None or self._under_way:
            tell(self, "run the query first (ctrl+r): its whole answer can be written then", "warning")
        else:
            self.app.push_screen(file_prompt(), partial(self._file_named, self._view.asked))

    def _file_named(self, asked: AskedQuery, words: str | None) -> None:
        if words is not None:
            self.run_worker(self._write(asked, file_of(words)), group="write", exit_on_error=False)

    async def _write(self, asked: AskedQuery, file: Path) -> None:
        def began(query: Cancellable) -> None:
            self._writing = query

        tell(self, f"writing {file} ... esc cancels")
        try:
            done = await self.seat.ask(partial(query_keeping.write, asked, file, began))
        finally:
            self._writing = None
        tell(self, f"wrote {numbered(done.num_rows, 'row')}, {done.num_bytes:,} bytes: {file}")

    def action_save(self) -> None:
        asked, statement = self._view.asked, self._editor.statement
        if asked and asked.error and not asked.is_cancelled and statement and asked.statement.text == statement.text:
            tell(self, f"no panel of what has just failed, it would in every report: {asked.error}", "warning")
        else:
            self.app.push_screen(panel_prompt(), self._panel_named)

    def _panel_named(self, name: str | None) -> None:
        if name is not None:
            self.run_worker(self._save(name), group="save", exit_on_error=False)

    async def _save(self, name: str) -> None:
        view, editor = self._view, self._editor
        shown = (view.asked, view.view, view.table.column)
        text = await asyncio.to_thread(query_keeping.text_of_panel, name, editor.text, editor.statement, *shown)
        file, found = await self.seat.ask(partial(query_keeping.save, name, text, self._subject))
        if found is None or found.state == "rows":
            tell(self, f"the panel {name} is on the Run screen; deleting {file} deletes it")
        else:
            tell(self, f"the panel {name} is saved; of this run: {found.why}; deleting {file} deletes it", "warning")
        self._freshener.mark()

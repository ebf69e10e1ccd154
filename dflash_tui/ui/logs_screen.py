"""The Logs screen: a run's log, what its trainer printed, and the lines that are no record, followed while they grow.

Owns which view, what is searched and filtered, where the cursor goes. Files are read in threads, the lines in sight
alone; what the tables know of them is asked as seldom as a log of a million lines asks for.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.store.log_notes import LogNotes, ask_log_notes
from dflash_tui.store.log_words import TROUBLE, Words, typed
from dflash_tui.store.transcript import Layout, Transcript, View
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.log_finds import Find, find_place, find_trouble, find_words
from dflash_tui.ui.log_lines import LogLines
from dflash_tui.ui.log_words import NO_RUN, VIEWS, title_words, where_words, why_empty
from dflash_tui.ui.messages import RunAdvanced, RunOpened
from dflash_tui.ui.screen import MainScreen
from dflash_tui.ui.seat import Seat

PROMPTS = {"search": "/ search for", "filter": "& only lines with", "go_to": ": go to a step, or #line"}
NOTES_S = 10.0
# How often files are looked at, and for how long a filter may look at once.
LOOK_S = 0.5
SIFT_S = 0.25


class LogsScreen(MainScreen):
    CSS_PATH = "logs.tcss"
    TITLE = "Logs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "view(1)", "view", tooltip="The next view: the log's lines, what was printed, rejected lines."),
        Binding("shift+tab", "view(-1)", "view before", show=False, tooltip="The view before."),
        Binding("f", "follow", "follow", tooltip="Stay at the end as lines come, or where you are."),
        Binding("G,end", "last", "last", show=False, tooltip="To the last line, and follow."),
        Binding(
            "slash", "ask('search')", "search", key_display="/", tooltip="Search: small letters find capitals too."
        ),
        Binding(
            "n", "again(1)", "next", tooltip="The next line with the words searched for. Elsewhere n is a new run."
        ),
        Binding("N", "again(-1)", "before", show=False, tooltip="The line before with the words searched for."),
        Binding(
            "ampersand", "ask('filter')", "filter", key_display="&", tooltip="Only lines with some words; Esc: all."
        ),
        Binding("colon", "ask('go_to')", "go to", key_display=":", tooltip="Go to a step; #12 is line 12."),
        Binding("e", "trouble(1)", "error", tooltip="The next reject, warning, NaN or printed error."),
        Binding("E", "trouble(-1)", "error before", show=False, tooltip="The one before."),
        Binding("enter", "line", "whole line", show=False, tooltip="The whole line, a figure a line."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the line."),
        # What matters elsewhere leaves the line of keys to what matters here.
        Binding("X", "stop", "stop", show=False, tooltip="Stop the run: it saves a checkpoint and ends. Asks first."),
        Binding("r", "resume", "resume", show=False, tooltip="Resume the run from its last checkpoint."),
        Binding("escape", "back", "back", show=False, tooltip="No filter, no search; then the run's dashboard."),
    ]

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.run_id: str | None = None
        self._run: Run | None = None
        self._view: View = "metrics"
        self._transcripts: dict[View, Transcript] = {}
        self._layout = Layout(())
        self._at: tuple[int, int] | None = None
        """The line to go to as soon as it is there."""
        self._notes = LogNotes()
        self._follows = True
        self._words: Words | None = None
        self._filters: dict[View, str] = {}
        self._asked = ""
        self._said = ""
        self._num_searches = 0
        self._freshener = Freshener(self._look)
        self._notes_freshener = Freshener(self._ask_notes, NOTES_S)
        self._wanting = asyncio.Event()
        self._title = Static(classes="title-line")
        self._lines = LogLines()
        self._prompt = Input(compact=True, id="log-prompt")
        self._detail = Static(classes="detail-line")

    def body(self) -> Iterator[Widget]:
        yield from (self._title, self._lines, self._prompt, self._detail)

    def on_mount(self) -> None:
        self._prompt.display = False
        self._lines.focus()
        self.set_interval(LOOK_S, lambda: self._freshener.mark() if self.is_looked_at else None)
        self._begin_run()

    @property
    def subject(self) -> Run | None:
        return self._run

    @property
    def subject_id(self) -> str | None:
        return self.run_id

    def show(self, run_id: str | None) -> None:
        """Show this run's log, from its end; the same run stays where it is."""
        if run_id != self.run_id:
            self.run_id, self._run = run_id, None
            self._view, self._transcripts, self._notes = "metrics", {}, LogNotes()
            self._follows, self._words, self._filters = True, None, {}
            if self.is_running:
                self._begin_run()

    def _begin_run(self) -> None:
        self._begin()
        if self.run_id is not None:
            self.run_worker(self._notes_freshener.run(), group="notes", exclusive=True, exit_on_error=False)

    def _begin(self) -> None:
        self._layout = Layout(())
        self._lines.words = self._words
        self._lines.show(0, 0, (), NO_RUN if self.run_id is None else ("reading ...",))
        self._say("")
        if self.run_id is not None:
            self.run_worker(self._freshener.run(), group="log", exclusive=True, exit_on_error=False)
            self.run_worker(self._read(), group="lines", exclusive=True, exit_on_error=False)

    @on(events.ScreenResume)
    def _looked_at(self) -> None:
        self.seat.focus(self.run_id)
        self._mark()

    @on(events.ScreenSuspend)
    def _left(self) -> None:
        if not self.is_looked_at:
            self.seat.focus(None)

    def on_run_advanced(self, event: RunAdvanced) -> None:
        if event.run_id in (None, self.run_id):
            self._mark()

    def _mark(self) -> None:
        self._freshener.mark()
        self._notes_freshener.mark()

    @property
    def _transcript(self) -> Transcript:
        assert self.run_id is not None
        if self._view not in self._transcripts:
            self._transcripts[self._view] = Transcript(self.run_id, self._view)
        return self._transcripts[self._view]

    async def _ask_notes(self) -> None:
        """What the tables know. Without them the lines are there all the same."""
        run_id = self.run_id
        if run_id is None:
            return
        try:
            self._run = await self.seat.ask(lambda store: store.detail(run_id).run)
            self.can_have_changed()
            notes = await self.seat.ask(partial(ask_log_notes, run_id))
        except DflashError as e:
            self._say(str(e))
            return
        self._notes = notes
        self._freshener.mark()

    async def _look(self) -> None:
        """What came since the last look, with the rows that will be in sight."""
        view, transcript, lines = self._view, self._transcript, self._lines
        transcript.notes = self._notes
        until = time.monotonic() + SIFT_S
        try:
            layout = await asyncio.to_thread(transcript.look, lambda: time.monotonic() < until)
            # A page on each side of where the cursor will be.
            page = max(1, lines.size.height)
            first = max(0, self._place_in(layout) - 2 * page)
            rows = await asyncio.to_thread(layout.rows, first, 4 * page)
        except OSError as e:
            self._say(f"{e.filename}: cannot be read: {e.strerror}")
            return
        if view != self._view or transcript is not self._transcripts.get(view):
            return
        if layout != self._layout:
            # A person may have moved meanwhile.
            place, self._layout, self._at = self._place_in(layout), layout, None
            lines.show(layout.num_rows, place, enumerate(rows, first), why_empty(view, self._run, layout, self._filter))
        self._show_title()
        if not layout.is_whole:
            self._freshener.mark()

    def _place_in(self, layout: Layout) -> int:
        """Where the cursor goes: the end that is followed, else the line that it is on."""
        if self._follows:
            return layout.num_rows - 1
        here, is_note = self._at, False
        if here is None and (line := self._lines.selected):
            here, is_note = (line.part, line.line_no), line.kind == "note"
        row = None if here is None else layout.row_of(*here)
        return self._lines.cursor if row is None else row - is_note

    async def _read(self) -> None:
        """The rows that came into sight, until cancelled."""
        while True:
            await self._wanting.wait()
            self._wanting.clear()
            layout, wanted = self._layout, self._lines.wanted
            if wanted:
                rows = await asyncio.to_thread(layout.rows, wanted.start, len(wanted))
                if layout is self._layout:
                    self._lines.put(enumerate(rows, wanted.start))

    @on(LogLines.Wanted)
    def _rows_wanted(self) -> None:
        self._wanting.set()

    @on(LogLines.Moved)
    def _moved(self, event: LogLines.Moved) -> None:
        if event.is_by_hand:
            self._follows, self._said = self._lines.cursor == self._lines.num_rows - 1 and self._follows, ""
            self._show_title()
        self._show_detail()

    def _show_title(self) -> None:
        name = self._run.name if self._run else self.run_id or ""
        words = title_words(self._view, name, self._layout, self._filter, self._notes.num_rejects, self._follows)
        self._title.update(Content(words), layout=False)

    @property
    def _filter(self) -> str:
        return self._filters.get(self._view, "")

    def _say(self, words: str) -> None:
        """In the last line, until the cursor moves."""
        self._said = words
        self._show_detail()

    def _show_detail(self) -> None:
        row = self._lines.selected
        words = self._said or (where_words(self._view, row, self._layout) if row else "")
        self._detail.update(Content(visible(words)), layout=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("line", "copy", "trouble", "ask", "follow", "last", "view"):
            return (self.run_id is not None) or None
        if action == "again":
            return (self._words is not None) or None
        return super().check_action(action, parameters)

    def action_view(self, by: int) -> None:
        names = list(VIEWS)
        row, before = self._lines.selected, self._view
        self._view = names[(names.index(before) + by) % len(names)]
        # A reject is looked at where it stands in the log, and the other way round.
        is_same_log = "output" not in (before, self._view)
        self._at = (row.part, row.line_no) if row is not None and is_same_log else None
        self._follows = self._at is None
        self._begin()

    def action_follow(self) -> None:
        self._follows = not self._follows
        if self._follows:
            self._lines.move_to(self._lines.num_rows - 1)
        self._show_title()

    def action_last(self) -> None:
        self._follows = True
        self._lines.move_to(self._lines.num_rows - 1)

    def action_back(self) -> None:
        if self._prompt.display:
            self._close_prompt()
            self._say("")
        elif self._filters.pop(self._view, None):
            self._transcript.filter(None)
            self._freshener.mark()
        elif self._words:
            self._find(None)
        elif self.run_id is not None:
            self.post_message(RunOpened(self.run_id))

    def action_ask(self, what: str) -> None:
        self._asked = what
        self._prompt.value = ""
        self._say(f"{PROMPTS[what]} · Enter, or Esc")
        self._prompt.display = True
        self._prompt.focus()

    def _close_prompt(self) -> None:
        self._prompt.display = False
        self._lines.focus()

    @on(Input.Submitted, "#log-prompt")
    def _answered(self, event: Input.Submitted) -> None:
        self._close_prompt()
        self._say("")
        words = event.value
        if self._asked == "search" and words:
            self._find(typed(words))
            self.action_again(1)
        elif self._asked == "filter":
            self._filters[self._view] = words
            self._transcript.filter(typed(words) if words else None)
            self._freshener.mark()
        elif self._asked == "go_to" and words.strip() and self.run_id is not None:
            part = row.part if (row := self._lines.selected) else 1
            has_steps = self._view != "output"
            self._go(find_place(self.seat, self.run_id, self._layout, part, words.strip(), has_steps=has_steps))

    def _find(self, words: Words | None) -> None:
        self._words = self._lines.words = words
        self._lines.refresh()
        self.refresh_bindings()

    def action_again(self, by: int) -> None:
        if self._words is not None:
            self._go(self._find_words(self._words, by, repr(self._words.needles[0].decode())))

    def action_trouble(self, by: int) -> None:
        row = self._lines.selected
        if self._view == "output":
            self._go(self._find_words(TROUBLE, by, "an error to see"))
        elif row is not None and self.run_id is not None:
            self._go(find_trouble(self.seat, self.run_id, self._layout, row, by))

    def _find_words(self, words: Words, by: int, name: str) -> Coroutine[None, None, Find]:
        search = self._num_searches + 1
        return find_words(self._layout, self._lines.cursor, words, by, name, lambda: search == self._num_searches)

    def _go(self, finding: Coroutine[None, None, Find]) -> None:
        """Look for something and go there; what was looked for before, nobody wants to know any more."""
        self._num_searches += 1
        self._say("looking ...")
        self.run_worker(self._arrive(finding), group="search", exclusive=True, exit_on_error=False)

    async def _arrive(self, finding: Coroutine[None, None, Find]) -> None:
        try:
            row, said = await finding
        except DflashError as e:
            row, said = None, str(e)
        if row is not None:
            self._follows = False
            self._lines.move_to(row)
        # Behind the message that the cursor moved, which ends what was said before.
        self.call_after_refresh(self._say, said)

    def action_line(self) -> None:
        from dflash_tui.ui.whole_screen import WholeScreen

        row = self._lines.selected
        if row is not None and row.kind != "note":
            trouble = f"no record: {row.reason}" if row.reason else ""
            where = where_words(self._view, row, self._layout)
            self.app.push_screen(WholeScreen(row.text, where, "the line", trouble))

    def action_copy(self) -> None:
        row = self._lines.selected
        if row is not None:
            copy(self, row.text, f"line {row.line_no:,}")

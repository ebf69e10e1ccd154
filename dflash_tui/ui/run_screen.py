"""The Run screen, the dashboard: a status line over a grid of panels, kept fresh while it is looked at.

Owns which run, which window, which panel. The store is asked in threads, the panels in sight in one go.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.charts import Mark
from dflash_tui.errors import DflashError
from dflash_tui.runs import Run, RunState, Window
from dflash_tui.store.base import AttemptRow, PanelResult, RunDetail, Store
from dflash_tui.store.tail import last_words
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.messages import RunAdvanced, RunLeft
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.panel_grid import PanelGrid
from dflash_tui.ui.panel_text import as_tsv, figure
from dflash_tui.ui.screen import MainScreen
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.status import StatusLine

NO_RUN = "No run chosen.\n\n1 lists the runs, Enter opens one; n starts a new one."
# The time left is counted down between two looks at it.
ETA_S = 5.0
PANEL_ACTIONS = frozenset({"zoom", "log_scale", "sql", "copy"})


class RunScreen(MainScreen):
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_panel(1)", "panel", tooltip="The next panel; zoomed, it is zoomed instead."),
        Binding("shift+tab", "next_panel(-1)", "panel before", show=False, tooltip="The panel before."),
        Binding("z,enter", "zoom", "zoom", key_display="z", tooltip="Give the screen to this panel, or back to all."),
        Binding("w", "window", "window", tooltip="The steps to look at: the run, its last rows, or A..B."),
        Binding("o", "log_scale", "log", tooltip="Logarithmic y axis on this panel, or its own scale again."),
        Binding("e", "sql", "SQL", tooltip="The question that this panel asks, and its help."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the numbers of this panel, as tab-separated lines."),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, tooltip="The next page of panels."),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip="The page of panels before."),
        Binding("escape", "back", "back", show=False, tooltip="All panels again; then the list of runs."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self.run_id: str | None = None
        self._clock = clock
        self._window = Window()
        self._run: Run | None = None
        self._eta_s: float | None = None
        self._eta_at = -ETA_S
        self._freshener = Freshener(self._refresh)
        self._status = StatusLine(clock)
        self._note = Static(id="run-note")
        self._grid = PanelGrid()

    def body(self) -> Iterator[Widget]:
        yield from (self._status, self._note, self._grid)

    def on_mount(self) -> None:
        self._begin()
        self.when_idle(self._freshener.mark)
        self._ask_now()

    @property
    def subject(self) -> Run | None:
        return self._run

    def show(self, run_id: str) -> None:
        """Show another run, all of it."""
        if run_id != self.run_id:
            self.run_id, self._run, self._window = run_id, None, Window()
            self._eta_s, self._eta_at = None, -ETA_S
            if self.is_running:
                self._begin()
        self._ask_now()

    def _begin(self) -> None:
        """Nothing is known yet of the run, and nothing of another one stays to be mistaken for it."""
        self._grid.display = False
        self._status.forget()
        self._say(NO_RUN if self.run_id is None else "reading ...")

    def _ask_now(self) -> None:
        """Whatever is under way answers a question that nobody asks any more."""
        if self.is_running and self.run_id is not None:
            self.run_worker(self._freshener.run(), group="panels", exclusive=True, exit_on_error=False)

    @on(events.ScreenResume)
    def _looked_at(self) -> None:
        self.seat.focus(self.run_id)
        self._freshener.mark()

    @on(events.ScreenSuspend)
    def _left(self) -> None:
        if not self.is_looked_at:
            self.seat.focus(None)

    @on(Panel.Resized)
    def _resized(self) -> None:
        self._freshener.mark()

    def on_run_advanced(self, event: RunAdvanced) -> None:
        if event.run_id in (None, self.run_id):
            self._freshener.mark()

    async def _refresh(self) -> None:
        run_id, grid = self.run_id, self._grid
        if run_id is None:
            return
        is_new = self._run is None
        names = None if is_new else grid.names_in_sight()
        ask = Question(run_id, names, self._window, grid.buckets, self._clock() - self._eta_at >= ETA_S)
        try:
            answer = await self.seat.ask(partial(ask_dashboard, ask))
        except DflashError as e:
            self._say(str(e))
            return
        if is_new:
            await grid.clear()
            grid.display = True
        if ask.wants_eta:
            self._eta_s, self._eta_at = answer.eta_s, self._clock()
        self._run = answer.detail.run
        self.can_have_changed()
        self._say((self._run.host and self.seat.contact(self._run.host)) or answer.words or "")
        await grid.show(answer.panels, resume_marks(answer.detail.attempts), _first_panels(self._run))
        left_s = None if self._eta_s is None else self._eta_s - (self._clock() - self._eta_at)
        self._status.show(self._run, left_s, "" if self._window == Window() else str(self._window))

    def _say(self, words: str) -> None:
        self._note.display = bool(words)
        self._note.update(Content(visible(words, keep="\n")))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in PANEL_ACTIONS:
            panel = self._panel
            if panel is None or (action == "log_scale" and not panel.has_scale):
                return None
        if action == "window":
            return (self.run_id is not None) or None
        return super().check_action(action, parameters)

    @property
    def _panel(self) -> Panel | None:
        return self._grid.zoomed or self._grid.focused

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        self.refresh_bindings()
        self._freshener.mark()

    def action_next_panel(self, by: int) -> None:
        self._grid.step(by)

    def action_page(self, by: int) -> None:
        self._grid.scroll_relative(y=by * self._grid.size.height, animate=False)
        self._freshener.mark()

    def action_zoom(self) -> None:
        self._grid.zoom(None if self._grid.zoomed else self._grid.focused)

    def action_back(self) -> None:
        if self._grid.zoomed:
            self.action_zoom()
        else:
            self.post_message(RunLeft())

    def action_log_scale(self) -> None:
        if self._panel is not None:
            self._panel.toggle_log()

    def action_copy(self) -> None:
        if self._panel is not None and self._panel.result is not None:
            copy(self, as_tsv(self._panel.result), f"the numbers of {self._panel.result.title}")

    def action_window(self) -> None:
        from dflash_tui.ui.window_screen import WindowScreen

        self.app.push_screen(WindowScreen(self._window), self._window_chosen)

    def _window_chosen(self, window: Window | None) -> None:
        if window is not None and window != self._window:
            self._window = window
            self._ask_now()

    def action_sql(self) -> None:
        from dflash_tui.ui.sql_screen import SqlScreen

        if self._run is not None and self._panel is not None and self._panel.result is not None:
            self.app.push_screen(SqlScreen(self._panel.result, self._run, self._window))


class Question(NamedTuple):
    """What the screen wants to know now; `names` None means every panel."""

    run_id: str
    names: list[str] | None
    window: Window
    buckets: int
    wants_eta: bool


class DashboardAnswer(NamedTuple):
    detail: RunDetail
    panels: list[PanelResult]
    eta_s: float | None
    words: str | None
    """What the trainer said last, where its figures do not speak for it."""


def ask_dashboard(ask: Question, store: Store) -> DashboardAnswer:
    """All that the screen shows. Blocking; raises DflashError."""
    detail = store.detail(ask.run_id)
    panels = store.report(ask.run_id, ask.names, ask.window, ask.buckets)
    # Over the whole run: in a window of old steps the time left means nothing.
    budget = store.report(ask.run_id, ["budget"], Window(), 1) if ask.wants_eta else []
    is_mute = detail.run.host is not None and (detail.run.step is None or detail.run.state == RunState.FAILED)
    words = last_words(ask.run_id) if is_mute else None
    return DashboardAnswer(detail, panels, next((figure(result, "eta_s") for result in budget), None), words)


def _first_panels(run: Run) -> tuple[str, ...]:
    """What a first look needs: of our own trainer its acceptance, of any other log its vital signs."""
    sixth, seventh = ("acceptance", "vitals") if run.kind == "train" else ("vitals", "acceptance")
    return ("loss", "grad_norm", sixth, "length_buckets", "lr", "throughput", seventh)


def resume_marks(attempts: Iterable[AttemptRow]) -> tuple[Mark, ...]:
    """Where the attempts after the first began."""
    return tuple(
        Mark(attempt.first_step, f"attempt {attempt.attempt}")
        for attempt in attempts
        if attempt.attempt > 1 and attempt.first_step is not None
    )

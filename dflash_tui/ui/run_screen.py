"""The Run screen, the dashboard: a status line over a grid of panels, kept fresh while it is looked at.

Owns which run, which window, which panel. The store is asked in threads, the panels in sight in one go.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui import references
from dflash_tui.alerts import BUSY_SHARE, GAP_S
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import Run, Stretches, Window
from dflash_tui.store.sql_header import changed_at
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.course import MISSING
from dflash_tui.ui.dashboard import Question, ask_dashboard, extent_of, first_panels, resume_marks
from dflash_tui.ui.findings import NAME as FINDINGS
from dflash_tui.ui.findings import Found, as_result, ask_findings, badge, waits_for_steps
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.messages import RunAdvanced, RunLeft
from dflash_tui.ui.panel import Panel, Sight
from dflash_tui.ui.panel_grid import PanelGrid
from dflash_tui.ui.panel_text import as_tsv
from dflash_tui.ui.screen import MainScreen, tell
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.status import StatusLine
from dflash_tui.ui.view import AXES, WHOLE_RUN, View

NO_RUN = "No run chosen.\n\n1 lists the runs, Enter opens one; n starts a new one."
# The time left is counted down between two looks at it.
ETA_S = 5.0
PANEL_ACTIONS = frozenset({"zoom", "log_scale", "smooth", "sql", "copy"})
ZOOM_X = "Half as many steps, or twice as many; ctrl+wheel too."
CURSOR = "A cursor in all charts, a row back or on; a click sets it."
FAR = "The cursor ten rows back or on."
PAN = "Zoomed: half a width earlier or later."
PAGE = "The next page of panels, or the one before."
STEP_ACTIONS = frozenset({"zoom_x", "reset_x", "pan", "cursor", "axis"})


class RunScreen(MainScreen):
    CSS_PATH: ClassVar[list[str | PurePath]] = ["panel.tcss", "run.tcss"]
    TITLE = "Run"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_panel(1)", "panel", tooltip="The next panel; zoomed, it is zoomed instead."),
        Binding("shift+tab", "next_panel(-1)", "panel before", show=False, tooltip="The panel before."),
        Binding("z,enter", "zoom", "zoom", key_display="z", tooltip="Give the screen to this panel, or back to all."),
        Binding("w", "window", "window", tooltip="What to look at: the run, its last rows, A..B; or A..B vs C..D."),
        Binding("plus,equals_sign", "zoom_x(0.5)", "zoom x", key_display="+", tooltip=ZOOM_X),
        Binding("x", "axis", "axis", tooltip="What the charts are over: steps, time since the start, tokens."),
        Binding("o", "log_scale", "log", tooltip="Logarithmic y axis on this panel, or its own scale again."),
        Binding("m", "smooth", "smooth", tooltip="Smooth the lines of this panel: more at each press, then none."),
        Binding("minus", "zoom_x(2.0)", "out", show=False, key_display="-", tooltip=ZOOM_X),
        Binding("0", "reset_x", "all steps", show=False, tooltip="All steps of the window again."),
        Binding("left,h", "cursor(-1)", "cursor back", show=False, tooltip=CURSOR),
        Binding("right,l", "cursor(1)", "cursor on", show=False, tooltip=CURSOR),
        Binding("shift+left", "cursor(-10)", "far back", show=False, tooltip=FAR),
        Binding("shift+right", "cursor(10)", "far on", show=False, tooltip=FAR),
        Binding("left_square_bracket", "pan(-0.5)", "earlier", show=False, tooltip=PAN),
        Binding("right_square_bracket", "pan(0.5)", "later", show=False, tooltip=PAN),
        Binding("R", "reference", "reference", show=False, tooltip="Hold the run against the next reference, or none."),
        Binding("e", "sql", "SQL", tooltip="The question that this panel asks, and its help."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the numbers of this panel, as tab-separated lines."),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, tooltip=PAGE),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, tooltip=PAGE),
        Binding("c", "clone", "clone", show=False, tooltip="A run like this one: change some of its settings first."),
        Binding("L", "app.launch_again", "again", show=False, tooltip="Launch the last recipe on its host again."),
        Binding("escape", "back", "back", show=False, tooltip="No cursor; all panels again; then the list of runs."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self.run_id: str | None = None
        self._run_name: str | None = None
        self._clock = clock
        self._view = View()
        self._sight = Sight()
        self._run: Run | None = None
        self._seen_at = clock()
        self._eta_s: float | None = None
        self._eta_at = -ETA_S
        self._panels_at = 0
        self._freshener = Freshener(self._refresh)
        self._found: Found | None = None
        self._badge = ""
        self._findings_freshener = Freshener(self._ask_findings, GAP_S, BUSY_SHARE)
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

    @property
    def subject_id(self) -> str | None:
        return self.run_id

    def show(self, run_id: str, name: str) -> None:
        """Show another run, all of it."""
        if run_id != self.run_id:
            self._run_name = name
            self.run_id, self._run, self._view, self._sight = run_id, None, View(), Sight()
            self._eta_s, self._eta_at, self._found = None, -ETA_S, None
            if self.is_running:
                self._begin()
        self._ask_now()

    def _begin(self) -> None:
        """Nothing is known yet of the run, and nothing of another one stays to be mistaken for it."""
        self._grid.display = False
        self._status.forget(self._run_name)
        self._say(NO_RUN if self.run_id is None else "reading ...")

    def _ask_now(self) -> None:
        """Whatever is under way answers a question that nobody asks any more."""
        if self.is_running and self.run_id is not None:
            self.run_worker(self._freshener.run(), group="panels", exclusive=True, exit_on_error=False)
            self.run_worker(self._findings_freshener.run(), group="findings", exclusive=True, exit_on_error=False)

    @on(events.ScreenResume)
    def _looked_at(self) -> None:
        self.seat.focus(self.run_id)
        self._freshener.mark()
        self._findings_freshener.mark()

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
            self._findings_freshener.mark()

    async def _ask_findings(self) -> None:
        """As seldom as a run of a million rows asks for; the panels do not wait for it."""
        run_id = self.run_id
        if run_id is None:
            return
        try:
            found = await self.seat.ask(partial(ask_findings, run_id))
        except DflashError:
            # The panels meet the same, and say so.
            return
        if run_id == self.run_id and found != self._found:
            self._found = found
            self._freshener.mark()

    async def _refresh(self) -> None:
        run_id, grid = self.run_id, self._grid
        if run_id is None:
            return
        is_new, view = self._run is None, self._view
        # A file that came into the folder of panels, or went: all of them, and no others.
        panels_at = changed_at("panels")
        is_other = is_new or panels_at != self._panels_at
        names = None if is_other else grid.names_in_sight()
        wants_eta = self._clock() - self._eta_at >= ETA_S
        ask = Question(run_id, names, view.asked, view.stretches, view.axis, grid.buckets, wants_eta)
        try:
            answer = await self.seat.ask(partial(ask_dashboard, ask))
        except DflashError as e:
            self._say(str(e))
            return
        if is_new:
            await grid.clear()
            grid.display = True
        elif is_other:
            await grid.keep({FINDINGS, *(panel.name for panel in answer.panels)})
        self._panels_at = panels_at
        if ask.wants_eta:
            self._eta_s, self._eta_at = answer.eta_s, self._clock()
        if ask.axis == self._view.axis != "step" and answer.course is None:
            tell(self, MISSING[ask.axis], "warning")
            self._view = replace(self._view, axis="step")
        run = answer.detail.run
        has_gone_on = self._meet(run)
        extent = self._sight.limits
        # Somebody may have zoomed meanwhile: these rows will do until the finer ones come.
        if ask.window == self._view.asked and (seen := extent_of(answer.panels)):
            extent = seen.within(self._view.zoom)
            self._view = self._view.seen(extent)
            extent = extent if self._view.zoom else self._view.whole
        marks, found = resume_marks(answer.detail.attempts), self._found
        self._sight = self._sight._replace(
            marks=marks,
            limits=extent,
            cursor=self._view.cursor,
            course=answer.course,
            clock=answer.clock,
            found=found.marks if found else {},
        )
        self.can_have_changed()
        self._say((run.host and self.seat.contact(run.host)) or answer.words or "")
        self._badge = badge(found.findings) if found else ""
        panels = [*answer.panels, as_result(found and found.findings)]
        await grid.show(panels, self._sight, first_panels(run), has_gone_on=has_gone_on)
        self._show_status()

    def _meet(self, run: Run) -> bool:
        """Take up how the run stands now. Returns whether it has gone on."""
        has_gone_on = self._run is not None and self._run.step != run.step
        self._run, self._seen_at = run, self._clock()
        if self._found and waits_for_steps(self._found.findings) and run.step is not None:
            self._findings_freshener.hurry()
        return has_gone_on

    def _show_status(self) -> None:
        if self._run is not None:
            left_s = None if self._eta_s is None else self._eta_s - (self._seen_at - self._eta_at)
            held = f"against {visible(self._sight.reference.name)}" if self._sight.reference else ""
            sights = [self._view.words, self._view.pair_words, self._view.place_words(self._sight.course), held]
            self._status.show(self._run, self._seen_at, left_s, sights, self._badge)

    def _say(self, words: str) -> None:
        self._note.display = bool(words)
        self._note.update(Content(visible(words, keep="\n")))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in PANEL_ACTIONS:
            panel = self._panel
            if panel is None or (action == "log_scale" and not panel.has_scale):
                return None
            if action == "smooth" and not panel.has_lines:
                return None
            if action == "sql" and not panel.is_asked:
                return None
        if action in STEP_ACTIONS and self._sight.limits is None:
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
        if self._view.cursor is not None:
            self._look(replace(self._view, cursor=None))
        elif self._grid.zoomed:
            self.action_zoom()
        else:
            self.post_message(RunLeft())

    def action_log_scale(self) -> None:
        if self._panel is not None:
            self._panel.toggle_log()

    def action_reference(self) -> None:
        names = [None, *references.names()]
        now = self._sight.reference.name if self._sight.reference else None
        name = names[(names.index(now) + 1 if now in names else 0) % len(names)]
        try:
            self._sight = self._sight._replace(reference=references.load(name) if name else None)
        except UsageError as e:
            tell(self, str(e), "warning")
        else:
            tell(self, f"held against {self._sight.reference.title}" if self._sight.reference else "no reference")
            self._grid.look(self._sight)
            self._show_status()

    def action_smooth(self) -> None:
        if self._panel is not None:
            self._panel.smooth_more()

    def action_axis(self) -> None:
        self._view = replace(self._view, axis=AXES[(AXES.index(self._view.axis) + 1) % len(AXES)])
        self._freshener.hurry()

    def action_zoom_x(self, by: float) -> None:
        if self._sight.limits is not None:
            self._look(self._view.zoomed(self._sight.limits, by))

    def action_reset_x(self) -> None:
        self._look(replace(self._view, zoom=None))

    def action_pan(self, by: float) -> None:
        if self._sight.limits is not None:
            self._look(self._view.panned(self._sight.limits, by))

    def action_cursor(self, by: int) -> None:
        steps, limits = self._grid.steps, self._sight.limits
        if steps and limits is not None:
            self._look(self._view.moved(steps, by, limits))

    @on(Panel.Pointed)
    def _pointed(self, event: Panel.Pointed) -> None:
        if event.zoom is None:
            self._look(replace(self._view, cursor=event.step))
        elif self._sight.limits is not None:
            self._look(self._view.zoomed(self._sight.limits, event.zoom, event.step))

    def _look(self, view: View) -> None:
        """Look so from now on: at once at the rows that are there, and at finer ones when these have come."""
        before, self._view = self._view, view
        limits = self._sight.limits
        if view.asked != before.asked:
            self._freshener.hurry()
            if view.whole is not None:
                limits = view.whole.within(view.zoom)
        self._sight = self._sight._replace(cursor=view.cursor, limits=limits)
        self._grid.look(self._sight)
        self._show_status()

    def action_copy(self) -> None:
        if self._panel is not None and self._panel.result is not None:
            copy(self, as_tsv(self._panel.result), f"the numbers of {self._panel.result.title}")

    def action_window(self) -> None:
        from dflash_tui.ui.window_screen import WindowScreen

        screen = WindowScreen(self._view.window, has_two=True, pair=self._view.pair_words)
        self.app.push_screen(screen, self._window_chosen)

    def _window_chosen(self, choice: Window | Stretches | None) -> None:
        if isinstance(choice, tuple):
            self._view = replace(self._view, stretches=choice)
            self._grid.focus_named("windows")
            self._ask_now()
        elif choice is not None and (choice != self._view.asked or (choice == WHOLE_RUN and self._view.stretches)):
            # The whole run is what there was before any choice: it takes two windows back as well.
            two = None if choice == WHOLE_RUN else self._view.stretches
            self._view = View(choice, axis=self._view.axis, stretches=two)
            self._ask_now()

    def action_sql(self) -> None:
        from dflash_tui.ui.query_subject import QuerySubject
        from dflash_tui.ui.sql_screen import SqlScreen

        if self._run is not None and self._panel is not None and self._panel.result is not None:
            subject = QuerySubject(self.run_id, self._view.asked, self._view.stretches)
            self.app.push_screen(SqlScreen(self._panel.result, subject))

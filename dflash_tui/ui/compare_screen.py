"""The Compare screen: the marked runs side by side, what tells them apart and how they do, over a chart of them all.

Owns which runs, which window, which chart, which reference. The store is asked in threads.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui import references
from dflash_tui.charts import MAX_TRACES
from dflash_tui.comparison import Held
from dflash_tui.errors import DflashError
from dflash_tui.references import Reference
from dflash_tui.runs import Run, Stretches, Window
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.compare_chart import CompareChart
from dflash_tui.ui.compare_list import REFERENCE, SIGNS, CompareList, rows_of
from dflash_tui.ui.compare_question import Answer, Known, Question, ask_comparison, chart_of
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.messages import RunAdvanced, RunLeft
from dflash_tui.ui.run_names import told_apart
from dflash_tui.ui.screen import MainScreen, tell
from dflash_tui.ui.seat import Seat

MARK_TWO = (
    "No runs are marked.",
    "",
    "1       to the list of runs",
    "space   marks the one under the cursor: mark two, or up to four",
    "6       back here",
)
MARK_ANOTHER = (
    "Only one run is marked.",
    "",
    "1       to the list of runs",
    "space   marks another one; then 6",
    "R       here: hold this one against figures that others reached",
)
ALONE = "-alone"
ABOUT = """\
Figures are of the steps that both runs have. The chart draws one panel of all marked runs, each by its letter; it
follows the cursor in the list, and tab goes through every panel that has something to draw. A reference is a JSON file;
story and paper ship, your own lie in references/ of the config folder."""


class CompareScreen(MainScreen):
    CSS_PATH: ClassVar[list[str | PurePath]] = ["panel.tcss", "compare.tcss"]
    TITLE = "Compare"
    ABOUT = ABOUT
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_chart(1)", "chart", tooltip="The next panel as the chart."),
        Binding("shift+tab", "next_chart(-1)", "chart before", show=False, tooltip="The panel before as the chart."),
        Binding("w", "window", "window", tooltip="The steps to compare: all that both have, the last N, or A..B."),
        Binding("R", "reference", "reference", tooltip="Hold the runs against the next reference, or none."),
        Binding("s", "turn", "swap", tooltip="Swap a and b; of more than two marked, the next two are compared."),
        Binding("o", "log_scale", "log", tooltip="Logarithmic y axis, or the panel's own scale again."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the list, as tab-separated lines."),
        Binding("escape", "back", "back", tooltip="Back to the list of runs; marks stay."),
    ]

    def __init__(self, seat: Seat, marked: Callable[[], Sequence[str]]) -> None:
        """`marked` tells which runs are to be compared, whenever the screen comes up."""
        super().__init__(seat)
        self.add_class(ALONE)
        self._marked = marked
        self._run_ids: list[str] = []
        self._window = Window()
        self._chart: str | None = None
        self._reference: Reference | None = None
        self._answer: Answer | None = None
        self._is_stale = True
        self._freshener = Freshener(self._refresh)
        self._title = Static(classes="title-line")
        self._list = CompareList()
        self._plot = CompareChart()
        self._detail = Static(classes="detail-line")

    def body(self) -> Iterator[Widget]:
        yield from (self._title, Container(self._list, self._plot, id="compare-body"), self._detail)

    def on_mount(self) -> None:
        self._list.focus()
        self._ask_now()

    @on(events.ScreenResume)
    def _looked_at(self) -> None:
        run_ids = self._marked()
        if sorted(run_ids) != sorted(self._run_ids):
            self._run_ids, self._window, self._answer = list(run_ids), Window(), None
            self._say(("reading ...",))
        # Of what its runs did meanwhile it was told nothing.
        self._is_stale = True
        self._freshener.mark()

    @property
    def subject(self) -> Run | None:
        """None: which of the runs would be stopped?"""
        return None

    def _ask_now(self) -> None:
        """Whatever is under way answers a question that nobody asks any more."""
        self._is_stale = True
        if self.is_running:
            self.run_worker(self._freshener.run(), group="compare", exclusive=True, exit_on_error=False)

    @on(CompareChart.Resized)
    def _look_again(self) -> None:
        self._freshener.mark()

    def on_run_advanced(self, event: RunAdvanced) -> None:
        if event.run_id in self._run_ids:
            self._is_stale = True
            self._freshener.mark()

    @property
    def _known(self) -> Known | None:
        return self._answer.known if self._answer else None

    async def _refresh(self) -> None:
        if len(self._run_ids) < (1 if self._reference else 2):
            self._answer = None
            self._say(MARK_ANOTHER if self._run_ids else MARK_TWO)
            return
        known = None if self._is_stale else self._known
        ask = Question(self._run_ids, self._window, self._chart, max(16, 2 * self._plot.size.width), known)
        self._is_stale = False
        try:
            self._answer = await self.seat.ask(partial(ask_comparison, ask))
        except DflashError as e:
            self._answer, self._is_stale = None, True
            self._say((visible(str(e)),))
            return
        self._show()

    def _say(self, lines: Sequence[str]) -> None:
        self.refresh_bindings()
        self._title.update(Content("Compare"))
        self._list.show_rows([], lines)
        self.add_class(ALONE)
        self._detail.update("")

    def _show(self) -> None:
        answer = self._answer
        if answer is None:
            return
        known = answer.known
        self._list.show_rows(rows_of(known.comparison, self._reference), (known.comparison.why or "",))
        self._title.update(Content(visible(self._title_words(known))))
        if self.has_class(ALONE):
            self.remove_class(ALONE)
            self.refresh_bindings()
        if not answer.drawn:
            self._plot.say(known.comparison.why or "no panel has anything to draw")
            return
        self._chart = answer.drawn[0].name
        place = known.charts.index(self._chart) + 1, len(known.charts)
        self._plot.show(answer.drawn, told_apart(known.runs), self._held_here(known), place)

    def _title_words(self, known: Known) -> str:
        names = [f"{sign} {name}" for sign, name in zip(SIGNS, told_apart(known.runs), strict=False)]
        parts = ["Compare"]
        if known.comparison.window:
            first, last = known.comparison.window
            parts.append(f"steps {first:,}..{last:,}")
        if self._window.kind == "last":
            parts.append(f"the last {self._window.n:,}")
        parts += names
        if len(self._run_ids) > MAX_TRACES:
            parts.append(f"the first {MAX_TRACES} of {len(self._run_ids)} marked")
        return " · ".join(parts)

    def _held_here(self, known: Known) -> list[Held]:
        """The figures of the reference that belong into the chart; of those by benchmark, what the runs have too."""
        held = known.comparison.held_against(self._reference) if self._reference else []
        return [
            one
            for one in held
            if chart_of(one.metric) == self._chart
            and (one.stat == "last" or one.stat.isdecimal() or one.a is not None or one.b is not None)
        ]

    @on(CompareList.Moved)
    def _moved(self) -> None:
        row = self._list.selected
        self._detail.update(Content(visible(row.whole) if row else ""))
        chart = chart_of(row.metric) if row and row.metric and self._list.has_focus else None
        if chart and self._known and chart in self._known.charts and chart != self._chart:
            self._draw(chart)

    def _draw(self, chart: str) -> None:
        self._chart = chart
        self._freshener.mark()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("stop", "resume"):
            return False
        if action in ("next_chart", "window", "log_scale", "copy", "turn"):
            return (self._answer is not None) or None
        return True

    def action_next_chart(self, by: int) -> None:
        charts = self._known.charts if self._known else []
        if charts:
            at = charts.index(self._chart) if self._chart in charts else 0
            self._draw(charts[(at + by) % len(charts)])

    def action_window(self) -> None:
        from dflash_tui.ui.window_screen import WindowScreen

        self.app.push_screen(WindowScreen(self._window), self._window_chosen)

    def _window_chosen(self, window: Window | Stretches | None) -> None:
        if isinstance(window, Window) and window != self._window:
            self._window = window
            self._ask_now()

    def action_reference(self) -> None:
        """The next of those there are, then none."""
        names = [None, *references.names()]
        now = self._reference.name if self._reference else None
        name = names[(names.index(now) + 1) % len(names)] if now in names else None
        try:
            self._reference = references.load(name) if name else None
        except DflashError as e:
            self._reference = None
            tell(self, str(e), "error")
        self._freshener.mark()
        self._show()
        self._list.go_to(REFERENCE)

    def action_turn(self) -> None:
        self._run_ids = self._run_ids[1:] + self._run_ids[:1]
        self._ask_now()

    def action_log_scale(self) -> None:
        self._plot.toggle_log()

    def action_copy(self) -> None:
        head = "\t".join(["", "a", "b", "b - a", "%"])
        copy(self, "\n".join([head, *("\t".join(row[:5]) for row in self._list.rows)]), "the comparison")

    def action_back(self) -> None:
        self.post_message(RunLeft())

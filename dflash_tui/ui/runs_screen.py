"""The Runs screen: every run there is, a filter, and one line on the run under the cursor."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run, RunState
from dflash_tui.text import duration, visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.run_figures import ask_figures
from dflash_tui.ui.run_filter import matches
from dflash_tui.ui.run_list import RunList
from dflash_tui.ui.screen import MainScreen
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.states import silence_s

# Figures and sparks read every run's rows: that is dearer than the list itself.
FIGURES_S = 2.0
OPENING = ("Opening the store ...",)
NO_RUNS = (
    "No runs yet.",
    "",
    "n   a new run: choose a recipe and a host",
    "q   leave; `dflash-tui demo` trains a small drafter on this machine,",
    "    `dflash-tui ingest FILE` takes in a log that you have",
)


class RunsScreen(MainScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/", tooltip="Filter the list as you type; Esc clears it."),
        Binding("n", "app.new_run", "new", tooltip="A new run: choose a recipe and a host."),
        Binding("L", "app.launch_again", "again", tooltip="Launch the last recipe on its host again."),
        Binding("q", "app.quit", "quit", tooltip="Leave. Runs go on: quitting never touches one."),
        Binding("escape", "clear_filter", "clear filter", tooltip="Clear the filter."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the id of the run under the cursor."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self._clock = clock
        self._freshener = Freshener(self._refresh)
        self._figures_freshener = Freshener(self._refresh_figures, FIGURES_S)
        self._runs: Sequence[Run] = ()
        self._seen_at = clock()
        self._trouble: str | None = None
        self._is_open = False
        self._title = Static(classes="title-line")
        self._filter = Input(placeholder="words, or host:x state:running", compact=True, id="filter")
        self._list = RunList(clock)
        self._detail = Static(classes="detail-line")

    def body(self) -> Iterator[Widget]:
        yield from (self._title, self._filter, self._list, self._detail)

    def on_mount(self) -> None:
        self._filter.display = False
        self._list.focus()
        self.when_idle(self._mark)
        self._show()

    @property
    def subject(self) -> Run | None:
        return self._list.selected

    @property
    def running(self) -> list[Run]:
        """The runs that were alive when last looked at."""
        return [run for run in self._runs if run.state in (RunState.STARTING, RunState.RUNNING)]

    def begin(self) -> None:
        """The seat is open: the store may be asked."""
        self.run_worker(self._freshener.run(), group="runs", exclusive=True, exit_on_error=False)
        self.run_worker(self._figures_freshener.run(), group="figures", exclusive=True, exit_on_error=False)

    def select(self, run_id: str) -> None:
        self._list.select(run_id)

    def on_screen_resume(self) -> None:
        self._mark()

    def on_run_advanced(self) -> None:
        self._mark()

    def _mark(self) -> None:
        self._freshener.mark()
        self._figures_freshener.mark()

    async def _refresh(self) -> None:
        try:
            self._runs = await self.seat.ask(lambda store: store.runs())
            self._seen_at, self._trouble, self._is_open = self._clock(), None, True
        except DflashError as e:
            self._trouble = str(e)
        self._show()

    async def _refresh_figures(self) -> None:
        # The list says what is wrong with the store; its figures are then simply as they were.
        with suppress(DflashError):
            self._list.show_figures(await self.seat.ask(ask_figures))

    def _show(self) -> None:
        words = self._filter.value
        shown = [run for run in self._runs if matches(run, words)]
        if self._trouble and not self._runs:
            why: Sequence[str] = (visible(self._trouble),)
        elif not self._is_open:
            why = OPENING
        else:
            why = (f"No run matches {words!r}.", "Esc clears the filter.") if self._runs else NO_RUNS
        self._list.show(shown, self._seen_at, why)
        self._title.update(Content(self._title_words(len(shown))), layout=False)
        self._show_detail()

    def _title_words(self, num_shown: int) -> str:
        num_running = len(self.running)
        num_lost = sum(silence_s(run) is not None for run in self._runs)
        num_all = len(self._runs)
        parts = [f"Runs {num_all}" if num_shown == num_all else f"Runs {num_shown} of {num_all}"]
        parts += [f"{num_running} running"] if num_running else []
        parts += [f"{num_lost} without contact"] if num_lost else []
        return " · ".join(parts)

    def _show_detail(self) -> None:
        self._detail.update(Content(self._detail_words()), layout=False)

    def _detail_words(self) -> str:
        """What the list has no room for: why a host is silent, how a run ended, its id."""
        run = self._list.selected
        if self._trouble and self._runs:
            return visible(self._trouble)
        if run is None:
            return ""
        parts = [run.run_id if run.run_id != run.name else "", run.host or "no host (ingested)"]
        if run.host and (sentence := self.seat.contact(run.host)):
            parts.append(sentence)
        elif run.no_contact_s is not None:
            parts.append(f"seen {duration(run.no_contact_s)} ago")
        if run.attempt and run.attempt > 1:
            parts.append(f"attempt {run.attempt}")
        if run.code is not None:
            parts.append(f"exit code {run.code}")
        if run.signal is not None:
            parts.append(f"signal {run.signal}")
        return visible(" · ".join(filter(None, parts)))

    @on(RunList.Moved)
    def _moved(self) -> None:
        self._show_detail()
        self.can_have_changed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter":
            return bool(self._filter.display)
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()

    def action_clear_filter(self) -> None:
        self._filter.value = ""
        self._filter.display = False
        self._list.focus()

    def action_copy(self) -> None:
        if self.subject is not None:
            copy(self, self.subject.run_id, "the run's id")

    @on(Input.Changed, "#filter")
    def _filter_typed(self) -> None:
        self._show()

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._list.focus()

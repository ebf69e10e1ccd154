"""The Runs screen: every run there is, in an order, through a filter, and one line on the run under the cursor.

Owns what a person does to the list: order, filter, marks, pins. What a run's line says stands in `run_columns`.
"""

import string
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import Run, RunState
from dflash_tui.text import duration, visible
from dflash_tui.ui import pins
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.run_columns import Figures, RunRow, Verdict
from dflash_tui.ui.run_figures import ask_figures
from dflash_tui.ui.run_filter import parse
from dflash_tui.ui.run_list import FALLING, RISING, RunList
from dflash_tui.ui.run_names import endings
from dflash_tui.ui.run_order import Order
from dflash_tui.ui.screen import MainScreen, tell
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.states import silence_s, state_words

# Figures and sparks read every run's rows: that is dearer than the list itself.
FIGURES_S = 2.0
# What checks may take of the time, as in `alerts`, which the first screen does not wait for.
CHECKS_SHARE = 1 / 20
OPENING = ("Opening the store ...",)
NO_RUNS = (
    "No runs yet.",
    "",
    "n   a new run: choose a recipe and a host",
    "q   leave; `dflash-tui demo` trains a small drafter on this machine,",
    "    `dflash-tui ingest FILE` takes in a log that you have",
)


ABOUT = """\
The filter, of terms that all must hold:
  word           in the name, host, state, reason, kind or id
  host:pve       begins so; name~kl holds that; state=running is just that
  state:run,fail any of these
  loss<1.5       also <= > >= =, of step total done loss speed attempt age
                 silent; 20k and 1.5M, age>2h, done>50%
  !term          not so"""


class RunsScreen(MainScreen):
    TITLE = "Runs"
    ABOUT = ABOUT
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/", tooltip="Filter the list as you type; Esc clears it."),
        Binding("space", "mark", "mark", tooltip="Mark the run, or unmark it; 6 compares those that are marked."),
        Binding("s", "order", "sort", tooltip="Order the list by the next column; a click on a title does it too."),
        Binding("S", "reverse", "reverse", show=False, tooltip="Turn the order of the list round."),
        Binding(
            "p", "pin", "pin", show=False, tooltip="Keep the run on top of the list, also next time; or no longer."
        ),
        Binding("D", "forget", "forget", show=False, tooltip="Take the run off this machine. Asks first."),
        Binding("c", "clone", "clone", show=False, tooltip="A run like this one: change some of its settings first."),
        Binding("n", "app.new_run", "new", tooltip="A new run: choose a recipe and a host."),
        Binding("L", "app.launch_again", "again", show=False, tooltip="Launch the last recipe on its host again."),
        Binding("q", "app.quit", "quit", tooltip="Leave. Runs go on: quitting never touches one."),
        Binding("escape", "clear_filter", "clear filter", tooltip="Clear the filter."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy the id of the run under the cursor."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self._clock = clock
        self._freshener = Freshener(self._refresh)
        self._figures_freshener = Freshener(self._refresh_figures, FIGURES_S)
        self._verdicts_freshener = Freshener(self._refresh_verdicts, busy_share=CHECKS_SHARE)
        self._runs: Sequence[Run] = ()
        self._endings: Sequence[str] = ()
        self._figures: Mapping[str, Figures] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._marked: list[str] = []
        self._pinned = pins.pinned()
        self._order = Order()
        self._test = parse("")
        self._wrong = ""
        self._seen_at = clock()
        self._trouble: str | None = None
        self._is_open = False
        self._title = Static(classes="title-line")
        self._filter = Input(
            placeholder="words, host:x state:running name~kl loss<1.5 age>2h !kind:train", compact=True, id="filter"
        )
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
        return self._list.selected.run if self._list.selected else None

    def name_of(self, run_id: str) -> str:
        """Its name; of a run that has not come into the list yet, its id."""
        return next((run.name for run in self._runs if run.run_id == run_id), run_id)

    @property
    def marked(self) -> list[str]:
        """The ids of the marked runs, in the order of marking."""
        return list(self._marked)

    @property
    def running(self) -> list[Run]:
        """The runs that were alive when last looked at."""
        return [run for run in self._runs if run.state in (RunState.STARTING, RunState.RUNNING)]

    def begin(self) -> None:
        """The seat is open: the store may be asked."""
        self.run_worker(self._freshener.run(), group="runs", exclusive=True, exit_on_error=False)
        self.run_worker(self._figures_freshener.run(), group="figures", exclusive=True, exit_on_error=False)
        self.run_worker(self._verdicts_freshener.run(), group="verdicts", exclusive=True, exit_on_error=False)

    def select(self, run_id: str) -> None:
        self._list.select(run_id)

    def on_screen_resume(self) -> None:
        self._mark()

    def on_run_advanced(self) -> None:
        self._mark()

    def _mark(self) -> None:
        self._freshener.mark()
        self._figures_freshener.mark()
        self._verdicts_freshener.mark()

    async def _refresh(self) -> None:
        try:
            self._runs = await self.seat.ask(lambda store: store.runs())
            self._seen_at, self._trouble, self._is_open = self._clock(), None, True
        except DflashError as e:
            self._trouble = str(e)
        else:
            self._endings = endings(self._runs)
            known = {run.run_id for run in self._runs}
            self._marked = [run_id for run_id in self._marked if run_id in known]
            self._verdicts_freshener.mark()
        self._show()

    async def _refresh_figures(self) -> None:
        # The list says what is wrong with the store; its figures are then simply as they were.
        with suppress(DflashError):
            self._figures = await self.seat.ask(ask_figures)
            self._show()

    async def _refresh_verdicts(self) -> None:
        """A few runs at a time, and no more of the store's time than checks may take."""
        from dflash_tui.ui.verdicts import ask_verdicts, due

        if self.is_looked_at and (runs := due(self._runs, self._verdicts, now := self._clock())):
            self._verdicts |= await self.seat.ask(partial(ask_verdicts, runs, now))
            self._show()
            self._verdicts_freshener.mark()

    def _rows(self) -> Iterator[RunRow]:
        """Those that the filter lets through, the newest first."""
        marks = dict(zip(self._marked, chain(string.ascii_letters, repeat("+")), strict=False))
        since_s, none = self._clock() - self._seen_at, Figures()
        for run, ending in zip(self._runs, self._endings, strict=True):
            figures = self._figures.get(run.run_id, none)
            mark, is_pinned = marks.get(run.run_id, ""), run.run_id in self._pinned
            row = RunRow(run, figures, since_s, mark, is_pinned, self._verdicts.get(run.run_id), ending)
            if self._test(row):
                yield row

    def _show(self) -> None:
        shown = self._order.laid_over(self._rows())
        if self._trouble and not self._runs:
            why: Sequence[str] = (visible(self._trouble),)
        elif not self._is_open:
            why = OPENING
        elif self._runs:
            why = (f"No run matches {self._filter.value!r}.", "Esc clears the filter.")
        else:
            why = NO_RUNS
        self._list.show(shown, self._order, self._seen_at, why)
        self._title.update(Content(self._title_words(len(shown))), layout=False)
        self._show_detail()

    def _title_words(self, num_shown: int) -> str:
        num_running = len(self.running)
        num_lost = sum(silence_s(run) is not None for run in self._runs)
        num_all = len(self._runs)
        parts = [f"Runs {num_all}" if num_shown == num_all else f"Runs {num_shown} of {num_all}"]
        if self._wrong:
            return f"{parts[0]} · {visible(self._wrong)}"
        parts += [f"{num_running} running"] if num_running else []
        parts += [f"{num_lost} without contact"] if num_lost else []
        parts += [f"{len(self._marked)} marked"] if self._marked else []
        if self._order.column is not None:
            parts.append(f"by {self._order.column.title} {FALLING if self._order.is_falling else RISING}")
        elif self._order.is_reversed:
            parts.append("the oldest first")
        return " · ".join(parts)

    def _show_detail(self) -> None:
        self._detail.update(Content(self._detail_words()), layout=False)

    def _detail_words(self) -> str:
        """What the list has no room for: how a run ended, its id, why a host is silent."""
        run = self.subject
        if self._trouble and self._runs:
            return visible(self._trouble)
        if run is None:
            return ""
        parts = [state_words(run) if run.reason else "", run.run_id if run.run_id != run.name else ""]
        parts.append(run.host or "no host (ingested)")
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
        if (verdict := self._verdicts.get(run.run_id)) is not None and any(verdict.counts or ()):
            parts.append(f"{verdict.badge} found")
        return visible(" · ".join(filter(None, parts)))

    @on(RunList.Moved)
    def _moved(self) -> None:
        self._show_detail()
        self.can_have_changed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter":
            return bool(self._filter.display)
        if action in ("mark", "pin", "forget"):
            return (self.subject is not None) or None
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        if (run := self.subject) is not None:
            if run.run_id in self._marked:
                self._marked.remove(run.run_id)
            else:
                self._marked.append(run.run_id)
            self._show()

    def action_order(self) -> None:
        self._order = self._order.next()
        self._show()

    def action_reverse(self) -> None:
        self._order = self._order.reversed()
        self._show()

    @on(RunList.TitleChosen)
    def _title_chosen(self, event: RunList.TitleChosen) -> None:
        self._order = self._order.by(event.column)
        self._show()

    def action_pin(self) -> None:
        if (run := self.subject) is not None:
            self._pinned ^= {run.run_id}
            self._show()
            try:
                pins.keep(self._pinned)
            except (OSError, DflashError) as e:
                tell(self, f"pins last until the end of this session only: {e}", "warning")

    def action_forget(self) -> None:
        from dflash_tui.ui.forget_screen import ForgetScreen

        if self.subject is not None:
            self.app.push_screen(ForgetScreen(self.seat, self.subject))

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
    def _filter_typed(self, event: Input.Changed) -> None:
        """A filter that cannot be read is told; what the last one found stays."""
        try:
            self._test, self._wrong = parse(event.value), ""
        except UsageError as e:
            self._wrong = str(e)
        self._title.set_class(bool(self._wrong), "error")
        self._show()

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._list.focus()

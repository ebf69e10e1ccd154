"""What every main screen shares: breakpoints, the note when the terminal is too small, how errors are told, and the
verbs that act on the run a screen is about (stop, resume).
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.text import visible
from dflash_tui.ui.key_line import KeyLine
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.states import is_clonable, is_resumable, is_stoppable
from dflash_tui.ui.typed_keys import OPENING

WIDTHS = [(0, "-tiny"), (40, "-slim"), (64, "-narrow"), (110, "-wide"), (170, "-huge")]
HEIGHTS = [(0, "-flat"), (10, "-low"), (30, "-high"), (52, "-tall")]
# How often contact and ages are looked up although nothing advanced.
IDLE_S = 5.0
TOO_SMALL = "dflash-tui needs 40x10 cells.\nMake this terminal larger,\nor q to quit."


def tell(node: DOMNode, words: str, severity: Literal["information", "warning", "error"] = "information") -> None:
    """A toast, as plain text."""
    timeout_s = 12.0 if severity == "error" else 6.0
    node.app.notify(visible(words, keep="\n"), severity=severity, markup=False, timeout=timeout_s)


def raise_or_tell(node: DOMNode, event: Worker.StateChanged) -> None:
    """What a failed worker leads to: a sentence if it is one for people, else the crash that a bug deserves."""
    if event.state is WorkerState.ERROR and event.worker.error is not None:
        if not isinstance(event.worker.error, DflashError):
            raise event.worker.error
        tell(node, str(event.worker.error), "error")


class MainScreen(Screen[None]):
    """A screen of a mode. `subject` is the run that `X` and `r` act on."""

    ABOUT: ClassVar[str] = ""
    """What its help says beside the keys."""
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("X", "stop", "stop", tooltip="Stop the run: it saves a checkpoint and ends. Asks first."),
        Binding("r", "resume", "resume", tooltip="Resume the run from its last checkpoint, as a new attempt."),
    ]

    def __init__(self, seat: Seat) -> None:
        super().__init__()
        self.seat = seat
        self._can = (False, False, False)

    @property
    def is_looked_at(self) -> bool:
        """Whether this screen's mode is the one on the terminal, dialogs over it or not."""
        return bool(self.app.screen_stack) and self.app.screen_stack[0] is self

    def when_idle(self, mark: Callable[[], None]) -> None:
        """Call `mark` every few seconds while the screen is looked at: for what changes without any news."""
        self.set_interval(IDLE_S, lambda: mark() if self.is_looked_at else None)

    @property
    def subject(self) -> Run | None:
        raise NotImplementedError

    @property
    def subject_id(self) -> str | None:
        """The run that a person is at here, as soon as its id is known; None on a screen that is about no run."""
        return self.subject.run_id if self.subject else None

    def compose(self) -> ComposeResult:
        yield from self.body()
        yield Static(TOO_SMALL, classes="too-small")
        yield KeyLine()

    def body(self) -> Iterator[Widget]:
        """The screen's own widgets."""
        raise NotImplementedError

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """textual asks where a selection begins, also in a widget that went since the last layout, and then raises."""
        found, offset = super().get_widget_and_offset_at(x, y)
        is_gone = found is not None and found is not self and found.parent is None
        return (None, None) if is_gone else (found, offset)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys an action out: there is nothing here that it could act on now."""
        if action == "stop":
            return is_stoppable(self.subject) or None
        if action == "resume":
            return is_resumable(self.subject) or None
        if action == "clone":
            return is_clonable(self.subject) or None
        return True

    def can_have_changed(self) -> None:
        """What can be done to the run may be another: call it when the run or its state is."""
        can = is_stoppable(self.subject), is_resumable(self.subject), is_clonable(self.subject)
        if can != self._can:
            self._can = can
            self.refresh_bindings()

    def action_stop(self) -> None:
        from dflash_tui.ui.stop_screen import StopScreen

        if self.subject is not None:
            self.app.push_screen(StopScreen(self.seat, self.subject))

    def action_clone(self) -> None:
        if self.subject is not None:
            self.run_worker(self._clone(self.subject.run_id), group=OPENING, exclusive=True, exit_on_error=False)

    async def _clone(self, run_id: str) -> None:
        from dflash_tui.ui.launch_screen import LaunchScreen
        from dflash_tui.ui.run_names import next_free

        origin, runs = await self.seat.ask(lambda store: (store.detail(run_id).record, store.runs()))
        name = next_free(origin.name, {run.name for run in runs})
        self.app.push_screen(LaunchScreen(self.seat, origin=origin, name=name))

    def action_resume(self) -> None:
        if self.subject is not None:
            # Owned by the app: leaving this screen must not cut a resume in the middle.
            self.app.run_worker(self._resume(self.subject), group="control", exit_on_error=False)

    async def _resume(self, run: Run) -> None:
        tell(self, f"resuming {run.name} on {run.host} ...")
        now = await self.seat.resume(run.run_id, lambda words: tell(self, words, "warning"))
        attempt = f", attempt {now.attempt}" if now.attempt else ""
        tell(self, f"{now.name} is {now.state} on {now.host}{attempt}")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

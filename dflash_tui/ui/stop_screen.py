"""The stop dialog: names what would be stopped and what is saved of it, asks, then shows how it goes, to the second.

Esc never stops anything. Once asked for, a stop is the far side's work: closing this dialog, or the session, does not
take it back.
"""

import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.store.base import RunDetail, Store
from dflash_tui.store.screens import ask_screen
from dflash_tui.text import duration, visible
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.screen import raise_or_tell, tell
from dflash_tui.ui.seat import Seat

NEWLINE = "\n"
BAR_CELLS = 40
# While it is stopping, a checkpoint may come: that is worth a look.
LOOK_S = 2.0


class Saved(NamedTuple):
    """The newest checkpoint that the log tells of; `time` is unix seconds by the far side's clock."""

    step: int | None
    time: float | None


class StopScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "stop", "stop", tooltip="Ask the run to save and end; kill it after the grace."),
        Binding("ctrl+k", "kill", "kill", tooltip="Kill it at once: no checkpoint."),
        Binding("escape", "dismiss", "keep", tooltip="Keep it running."),
    ]

    def __init__(self, seat: Seat, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seat, self._run, self._clock = seat, run, clock
        self._detail: RunDetail | None = None
        self._saved: Saved | None = None
        self._asked_at: float | None = None
        self._is_kill = False
        self._trouble = ""
        self._is_told = False
        """That the store does not answer, which is asked again and again."""
        self._what = Static(classes="dialog-title")
        self._how = Static()
        self._error = Static(classes="error")
        self._keys = Static(classes="dialog-keys")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield from (self._what, self._how, self._error, self._keys)

    def on_mount(self) -> None:
        self._show()
        self._look_again()
        self.set_interval(1, self._show)
        self.set_interval(LOOK_S, self._look_again)

    def _look_again(self) -> None:
        if self._detail is None or self._asked_at is not None:
            self.run_worker(self._look(), group="detail", exclusive=True, exit_on_error=False)

    async def _look(self) -> None:
        def look(store: Store) -> tuple[RunDetail, Saved | None]:
            rows = ask_screen(store, "checkpoint", {"run": self._run.run_id})
            return store.detail(self._run.run_id), Saved(rows[0][0], rows[0][3]) if rows else None

        try:
            detail, self._saved = await self._seat.ask(look)
        except DflashError:
            if self._is_told:
                return
            self._is_told = True
            raise
        self._detail, self._run = detail, detail.run
        self._show()

    def _show(self) -> None:
        name, host = visible(self._run.name), visible(self._run.host or "-")
        if self._asked_at is None:
            what, how = f"Stop {name} on {host}?", self._question()
            keys = "enter stop   ctrl+k kill now: no checkpoint   esc keep it running"
        else:
            what, how = f"{'Killing' if self._is_kill else 'Stopping'} {name} on {host} ...", self._progress()
            keys = "esc close: it goes on" if self._is_kill else "ctrl+k kill now   esc close: the stop goes on"
        self._what.update(Content(what))
        self._how.update(Content(f"{visible(self._facts(), keep=NEWLINE)}\n\n{how}"))
        self._error.update(Content(visible(self._trouble)))
        self._error.display = bool(self._trouble)
        self._keys.update(keys)

    def _facts(self) -> str:
        run, pid = self._run, self._detail.pid if self._detail else None
        step = f"at step {run.step:,}" if run.step is not None else "no step yet"
        return (
            f"run {run.run_id}\npid {pid or '-'} on {run.host}, started {duration(run.age_s)} ago\n"
            f"{step}, seen {duration(run.no_contact_s)} ago\n{self._checkpoint()}"
        )

    def _checkpoint(self) -> str:
        if self._detail is None:
            return "last checkpoint: looking ..."
        if self._saved is None:
            return "last checkpoint: its log tells of none"
        step, at = self._saved
        words = "last checkpoint: " + (f"step {step:,}" if step is not None else "no step told")
        if step is not None and self._run.step is not None and self._run.step > step:
            words += f", {self._run.step - step:,} steps back"
        return words + (f", {duration(max(0.0, time.time() - at))} ago" if at is not None else "")

    def _question(self) -> str:
        from dflash_tui.control import stranger

        grace = duration(self._seat.config.stop.grace_s)
        other = stranger(self._detail) if self._detail else ""
        return f"It is asked to save a checkpoint and end. After {grace} it is killed.{other}"

    def _progress(self) -> str:
        """How long ago it was asked, and how much of the grace is left."""
        grace_s, since_s = self._seat.config.stop.grace_s, self._clock() - (self._asked_at or 0.0)
        asked = f"{duration(since_s)} since it was asked"
        if self._is_kill:
            return f"{asked}."
        left_s = max(0.0, grace_s - since_s)
        if not left_s:
            return f"{asked}.\nThe grace of {duration(grace_s)} is over: it is being killed."
        cells = round(BAR_CELLS * left_s / grace_s)
        return f"{asked}.\n{'━' * cells}{'─' * (BAR_CELLS - cells)} killed in {duration(left_s)}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return self._asked_at is None
        return not self._is_kill if action == "kill" else True

    def action_stop(self) -> None:
        self._ask(kill=False)

    def action_kill(self) -> None:
        self._ask(kill=True)

    def _ask(self, *, kill: bool) -> None:
        self._asked_at, self._is_kill, self._trouble = self._clock(), kill, ""
        self._show()
        # Owned by the app: closing the dialog leaves the stop going.
        self.app.run_worker(self._stop(kill=kill), group="control", exit_on_error=False)

    async def _stop(self, *, kill: bool) -> None:
        try:
            run = await self._seat.stop(self._run.run_id, kill=kill)
        except DflashError as e:
            if not self.is_running:
                raise
            self._asked_at, self._is_kill, self._trouble = None, False, str(e)
            self._show()
            return
        tell(self, f"{run.name} is {run.state}" + (f" ({run.reason})" if run.reason else ""))
        if self.is_running and self.is_active:
            self.dismiss()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

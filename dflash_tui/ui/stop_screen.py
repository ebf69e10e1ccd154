"""The stop dialog: names what would be stopped, asks, then shows how it goes. Esc never stops anything.

Once asked for, a stop is the far side's work: closing this dialog, or the session, does not take it back.
"""

import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.text import duration, visible
from dflash_tui.ui.screen import raise_or_tell, tell
from dflash_tui.ui.seat import Seat

NEWLINE = "\n"


class StopScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "stop", "stop", tooltip="Ask the run to save and end; kill it after the grace."),
        Binding("ctrl+k", "kill", "kill", tooltip="Kill it at once: no checkpoint."),
        Binding("escape", "dismiss", "keep", tooltip="Keep it running."),
    ]

    def __init__(self, seat: Seat, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seat, self._run, self._clock = seat, run, clock
        self._pid: int | None = None
        self._asked_at: float | None = None
        self._is_kill = False
        self._trouble = ""
        self._what = Static(classes="dialog-title")
        self._how = Static()
        self._error = Static(classes="error")
        self._keys = Static(classes="dialog-keys")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield from (self._what, self._how, self._error, self._keys)

    def on_mount(self) -> None:
        self._show()
        self.run_worker(self._look(), group="detail", exit_on_error=False)
        self.set_interval(1, self._show)

    async def _look(self) -> None:
        detail = await self._seat.ask(lambda store: store.detail(self._run.run_id))
        self._run, self._pid = detail.run, detail.pid
        self._show()

    def _show(self) -> None:
        run, grace_s = self._run, self._seat.config.stop.grace_s
        step = f"at step {run.step:,}" if run.step is not None else "no step yet"
        seen = f"seen {duration(run.no_contact_s)} ago"
        facts = (
            f"run {run.run_id}\npid {self._pid or '-'} on {run.host}, started {duration(run.age_s)} ago\n{step}, {seen}"
        )
        if self._asked_at is None:
            what = f"Stop {run.name} on {run.host}?"
            how = f"It is asked to save a checkpoint and end. After {duration(grace_s)} it is killed."
            keys = "enter stop   ctrl+k kill now: no checkpoint   esc keep it running"
        else:
            what = f"{'Killing' if self._is_kill else 'Stopping'} {run.name} on {run.host} ..."
            end = "" if self._is_kill else f"; it is killed after {duration(grace_s)}"
            how = f"{duration(self._clock() - self._asked_at)} since it was asked{end}."
            keys = "esc close: it goes on" if self._is_kill else "ctrl+k kill now   esc close: the stop goes on"
        self._what.update(Content(visible(what)))
        self._how.update(Content(f"{visible(facts, keep=NEWLINE)}\n\n{how}"))
        self._error.update(Content(visible(self._trouble)))
        self._error.display = bool(self._trouble)
        self._keys.update(keys)

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

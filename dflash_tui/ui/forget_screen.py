"""The question before a run is forgotten: what is taken off this machine, and what stays on its host."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.store.base import Store
from dflash_tui.text import visible
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.screen import raise_or_tell, tell
from dflash_tui.ui.seat import Seat


class ForgetScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "forget", "forget", tooltip="Take it off this machine."),
        Binding("escape", "dismiss", "keep", tooltip="Keep it."),
    ]

    def __init__(self, seat: Seat, run: Run) -> None:
        super().__init__()
        self._seat, self._run = seat, run
        self._num_rows: int | None = None
        self._question = Static("counting its rows ...")
        self._error = Static(classes="error")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(visible(self._run.name)), classes="dialog-title")
            yield from (self._question, self._error)
            yield Static("enter forget it here   esc keep it", classes="dialog-keys")

    def on_mount(self) -> None:
        self._error.display = False
        self.run_worker(self._count(), group="detail", exit_on_error=False)

    async def _count(self) -> None:
        from dflash_tui.control import forget_question

        def count(store: Store) -> int:
            sql = "select count(*) from records where run = $run"
            with store.query(sql, {"run": self._run.run_id}, timeout_s=20) as answer:
                return int(answer.rows()[0][0])

        num_rows = await self._seat.ask(count)
        self._question.update(Content(visible(forget_question(self._run, num_rows))))
        self._num_rows = num_rows

    def action_forget(self) -> None:
        # Nobody has read a question that is not there yet.
        if self._num_rows is not None:
            self.run_worker(self._forget(), group="control", exclusive=True, exit_on_error=False)

    async def _forget(self) -> None:
        try:
            await self._seat.forget(self._run.run_id)
        except DflashError as e:
            self._error.display = True
            self._error.update(Content(visible(str(e))))
            return
        tell(self, f"{self._run.name} is forgotten here")
        self.dismiss()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

"""The prompt for a window: the run, its newest rows, or steps A..B. Owns how a window is written by a person."""

import re
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dflash_tui.errors import UsageError
from dflash_tui.runs import Window

CHOICES = (Window(), Window.last_rows(2000), Window.last_rows(500))


def parse_window(words: str) -> Window:
    """`run`, `2000` or `last 2000`, `3000..5000`. Raises UsageError that says what may be written."""
    text = words.strip().lower().replace(",", "").replace("_", "")
    if text in ("", "run", "all"):
        return Window()
    if found := re.fullmatch(r"(?:last\s*)?(\d{1,18})", text):
        return Window.last_rows(int(found[1]))
    if found := re.fullmatch(r"(\d{1,18})\s*(?:\.\.\.?|-|to)\s*(\d{1,18})", text):
        return Window.between(int(found[1]), int(found[2]))
    raise UsageError(f"{words!r} is no window: write run, last 2000, or 3000..5000")


class WindowScreen(ModalScreen[Window | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "keep", tooltip="Keep the window as it is."),
        Binding("down", "list", "list", show=False, tooltip="To the list."),
    ]

    def __init__(self, window: Window) -> None:
        super().__init__()
        self._now = window

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(f"Window: now {self._now}"), classes="dialog-title")
            yield Input(placeholder="last 2000, or 3000..5000", compact=True)
            yield Static(classes="error")
            yield OptionList(*(Option(Content(str(choice))) for choice in CHOICES), compact=True)
            yield Static("enter choose   down list   esc keep", classes="dialog-keys")

    def action_list(self) -> None:
        self.query_one(OptionList).focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(parse_window(event.value))
        except UsageError as e:
            self.query_one(".error", Static).update(Content(str(e)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(CHOICES[event.option_index])

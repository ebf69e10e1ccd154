"""The prompt for a window: the run, its newest rows, or steps A..B. Owns how a window is written by a person."""

import re
from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dflash_tui.errors import UsageError
from dflash_tui.runs import Stretches, Window, parse_range
from dflash_tui.ui.choices import Choices
from dflash_tui.ui.dialog import Dialog

CHOICES = (Window(), Window.last_rows(2000), Window.last_rows(500))


def parse_window(words: str) -> Window:
    """`run`, `2000` or `last 2000`, `3000..5000`. Raises UsageError that says what may be written."""
    text = words.strip().lower().replace(",", "").replace("_", "")
    if text in ("", "run", "all"):
        return Window()
    if found := re.fullmatch(r"(?:last\s*)?(\d{1,18})", text):
        return Window.last_rows(int(found[1]))
    with suppress(UsageError):
        return parse_range(text)
    raise UsageError(f"{words!r} is no window: write run, last 2000, or 3000..5000")


def parse_stretches(words: str) -> Stretches | None:
    """`3000..5000 vs 20000..23000`; None for what has no `vs`. Raises UsageError."""
    sides = re.split(r"\s+(?:vs|against)\.?\s+", words.strip().lower())
    if len(sides) == 1:
        return None
    if len(sides) > 2:
        raise UsageError(f"{words!r} names {len(sides)} windows: write 3000..5000 vs 20000..23000")
    return parse_range(sides[0]), parse_range(sides[1])


class WindowScreen(Dialog[Window | Stretches | None]):
    """Dismissed with a window; with `has_two` also with two that are held against one another.

    `pair` are the two there are; the whole run takes them back.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "keep", tooltip="Keep the window as it is."),
        Binding("down", "list", "list", show=False, tooltip="To the list."),
    ]

    def __init__(self, window: Window, *, has_two: bool = False, pair: str = "") -> None:
        super().__init__()
        self._now, self._has_two, self._pair = window, has_two, pair

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(
                Content(", ".join(filter(None, (f"Window: now {self._now}", self._pair)))), classes="dialog-title"
            )
            two = ", or two: 3000..5000 vs 20000..23000" if self._has_two else ", or 3000..5000"
            yield Input(placeholder=f"last 2000{two}", compact=True)
            yield Static(classes="error")
            back = ", and no two windows" if self._pair else ""
            labels = [f"{choice}{back if choice == Window() else ''}" for choice in CHOICES]
            yield Choices(*(Option(Content(label)) for label in labels), compact=True)
            yield Static("enter choose   down list   esc keep", classes="dialog-keys")

    def action_list(self) -> None:
        self.query_one(OptionList).focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        try:
            two = parse_stretches(event.value) if self._has_two else None
            self.dismiss(two or parse_window(event.value))
        except UsageError as e:
            self.query_one(".error", Static).update(Content(str(e)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(CHOICES[event.option_index])

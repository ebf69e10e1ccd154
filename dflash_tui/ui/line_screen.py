"""One line of a log in full: a record with a figure a line, any other as it is."""

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from dflash_tui.store.transcript import Line
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy


class LineScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back", tooltip="Back to the log."),
        Binding("y", "copy", "copy", tooltip="Copy the line."),
    ]

    def __init__(self, line: Line, where: str) -> None:
        super().__init__()
        self._line, self._where = line, where

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog page"):
            yield Static(Content(self._where), classes="dialog-title")
            if self._line.reason:
                yield Static(Content(f"no record: {self._line.reason}"), classes="error")
            yield TextArea(laid_out(self._line.text), read_only=True, compact=True)
            yield Static("y copy   esc back", classes="dialog-keys")

    def action_copy(self) -> None:
        copy(self, self._line.text, "the line")


def laid_out(text: str) -> str:
    """A JSON object with one key a line; any other text as it is."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(tree, dict):
        return text
    cells = [(visible(str(key)), visible(json.dumps(value, ensure_ascii=False))) for key, value in tree.items()]
    widest = min(30, max((len(key) for key, _ in cells), default=0))
    return "\n".join(f"{key:<{widest}}  {value}" for key, value in cells)

"""One text in full, a line of a log or a cell of an answer: a JSON object with a key a line, any other as it is."""

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.dialog import Dialog


class WholeScreen(Dialog[None]):
    """`what` is what it is called when it is copied; `trouble` stands above it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back", tooltip="Back."),
        Binding("y", "copy", "copy", tooltip="Copy it."),
    ]

    def __init__(self, text: str, where: str, what: str, trouble: str = "") -> None:
        super().__init__()
        self._text, self._where, self._what, self._trouble = text, where, what, trouble

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog page"):
            yield Static(Content(self._where), classes="dialog-title")
            if self._trouble:
                yield Static(Content(self._trouble), classes="error")
            yield TextArea(laid_out(self._text), read_only=True, compact=True)
            yield Static("y copy   esc back", classes="dialog-keys")

    def action_copy(self) -> None:
        copy(self, self._text, self._what)


def laid_out(text: str) -> str:
    """A JSON object with one key a line; any other text as it is."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        return visible(text, keep="\n\t")
    cells = [(visible(str(key)), visible(json.dumps(value, ensure_ascii=False))) for key, value in tree.items()]
    widest = min(30, max((len(key) for key, _ in cells), default=0))
    return "\n".join(f"{key:<{widest}}  {value}" for key, value in cells)

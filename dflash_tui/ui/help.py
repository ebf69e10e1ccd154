"""Help of the screen below: its keys, made from its bindings, and on a panel what the panel says of itself."""

from collections.abc import Sequence
from typing import ClassVar, Self

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from dflash_tui.text import visible
from dflash_tui.ui.commands import Action, actions
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.screen import MainScreen

QUIT_NOTE = "Runs live on their own machines: leaving this session, or losing it, never touches one."


class HelpScreen(Dialog[None]):
    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,f1", "dismiss", "close", tooltip="Back."),
        Binding("j", "scroll(1)", "down", show=False),
        Binding("k", "scroll(-1)", "up", show=False),
    ]

    def __init__(self, title: str, about: str, keys: Sequence[Action]) -> None:
        super().__init__()
        self._title, self._about, self._keys = title, about, keys

    @classmethod
    def of(cls, screen: Screen[object]) -> Self:
        """The help of `screen` as it is now."""
        focused = screen.focused
        if isinstance(focused, Panel) and focused.result is not None:
            return cls(focused.result.title, reflowed(focused.result.help), actions(screen))
        about = screen.ABOUT if isinstance(screen, MainScreen) else ""
        return cls(str(screen.title or screen.name or ""), about, actions(screen))

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            yield Static(Content(f"Help: {visible(self._title)}"), classes="dialog-title")
            if self._about:
                yield Static(Content(visible(self._about, keep="\n")), classes="help-about")
            yield Static(self._table())
            yield Static(QUIT_NOTE, id="quit-note")
            yield Static("j k scroll   esc close", classes="dialog-keys")

    def _table(self) -> Content:
        """A line for what keys do; two ways of one thing, there and back, share it."""
        lines: dict[str, tuple[str, bool]] = {}
        for action in self._keys:
            keys, is_enabled = lines.get(action.does, ("", False))
            lines[action.does] = f"{keys} {action.keys}".strip(), is_enabled or action.is_enabled
        widest = max((len(keys) for keys, _ in lines.values()), default=0)
        return Content("\n").join(
            Content.assemble((f"{keys:>{widest}}", "bold"), "  ", (does, "" if is_enabled else "dim"))
            for does, (keys, is_enabled) in lines.items()
        )

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def reflowed(text: str) -> str:
    """A file's comment as paragraphs, without the line ends it was written with."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))

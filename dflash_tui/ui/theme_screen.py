"""The choice of colours: what the cursor is on is tried at once; Enter keeps it, Esc goes back to what was."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dflash_tui.ui import themes
from dflash_tui.ui.choices import Choices
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.screen import tell


class ThemeScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "keep_old", "keep", tooltip="Keep the colours as they were."),
        Binding("j", "move(1)", "down", show=False, tooltip="Try the next."),
        Binding("k", "move(-1)", "up", show=False, tooltip="Try the one before."),
    ]

    def compose(self) -> ComposeResult:
        self._before = self.app.theme
        with Vertical(classes="dialog"):
            yield Static("Colours", classes="dialog-title")
            yield Choices(*(Option(Content(words), id=name) for name, words in themes.CHOICES.items()), compact=True)
            yield Static("enter keep   esc as before", classes="dialog-keys")

    def on_mount(self) -> None:
        if self._before in themes.CHOICES:
            self.query_one(OptionList).highlighted = list(themes.CHOICES).index(self._before)

    @on(OptionList.OptionHighlighted)
    def _tried(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id:
            self.app.theme = event.option_id

    @on(OptionList.OptionSelected)
    def _kept(self) -> None:
        try:
            themes.remember(self.app.theme)
        except OSError as e:
            tell(self, f"the choice of colours holds for this session only: {e.strerror}", "warning")
        self.dismiss()

    def action_keep_old(self) -> None:
        self.app.theme = self._before
        self.dismiss()

    def action_move(self, by: int) -> None:
        choices = self.query_one(OptionList)
        choices.highlighted = ((choices.highlighted or 0) + by) % choices.option_count

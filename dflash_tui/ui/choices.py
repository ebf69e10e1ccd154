"""Lists to choose from that take a key at any moment.

textual's look a page further among lines that were never laid out, as long as the terminal has no room for them or the
commands have just come, and raise.
"""

from contextlib import suppress
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.widgets import OptionList


class Choices(OptionList):
    def action_page_up(self) -> None:
        with suppress(LookupError):
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        with suppress(LookupError):
            super().action_page_down()  # type: ignore[no-untyped-call]


class Palette(CommandPalette):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def action_page(self, by: int) -> None:
        listed = self.query_one(OptionList)
        turn = listed.action_page_down if by > 0 else listed.action_page_up
        with suppress(LookupError):
            turn()  # type: ignore[no-untyped-call]

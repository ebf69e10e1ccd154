"""What every dialog is: a screen over another one that is left once."""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Enter and Esc pressed at once are two wishes to leave: the second would take the screen below away."""
        if self in self.app.screen_stack:
            return super().dismiss(result)
        return AwaitComplete.nothing()  # type: ignore[no-untyped-call,no-any-return]

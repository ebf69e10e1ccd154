"""A check box that says by a sign whether it is on: textual's own has the same one always, and tells by colour."""

from textual.content import Content
from textual.widgets import Checkbox


class TickBox(Checkbox):
    """Has an X when it is on, and nothing when it is off."""

    def render(self) -> Content:
        self.BUTTON_INNER = "X" if self.value else " "
        return super().render()

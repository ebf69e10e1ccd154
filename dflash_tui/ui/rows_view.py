"""What lists, logs and tables share: rows of one line each, of which those in sight are drawn, and their looks.

What a row says, which rows there are and where the cursor is belong to each of them.
"""

from rich.style import Style
from textual.scroll_view import ScrollView

from dflash_tui.ui.cells import ink


class RowsView(ScrollView, can_focus=True, inherit_bindings=False):
    """Looks are component classes, each looked up once a theme: there is one to each cell on the screen."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._inks: dict[str, Style] = {}

    def _ink(self, look: str) -> Style:
        """As `ink`."""
        if look not in self._inks:
            self._inks[look] = ink(self, look)
        return self._inks[look]

    def _cursor_ink(self, look: str) -> Style:
        """The ground of what is under the cursor; reversed where there are no colours."""
        style = self.get_component_rich_style(look)
        return Style(bgcolor=style.bgcolor, bold=style.bold, reverse=style.reverse)

    def notify_style_update(self) -> None:
        self._inks.clear()
        super().notify_style_update()

"""The names that go on from what was typed, under the cursor. Draws them, and holds which is meant; takes no keys."""

from typing import ClassVar

from textual.geometry import Offset
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.cells import text_width
from dflash_tui.text import visible
from dflash_tui.ui.cells import ink, laid, line
from dflash_tui.ui.completion import Choice, Completion

_MOST_LINES = 8
_WIDEST = 44


class CompletionPopup(Widget):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"popup--ground", "popup--kind", "popup--chosen"}

    def __init__(self) -> None:
        super().__init__()
        self.display = False
        self.begun = ""
        self.is_touched = False
        """A person has moved in it: Enter means the list, not the text."""
        self._choices: list[Choice] = []
        self._index = 0

    @property
    def is_open(self) -> bool:
        return bool(self._choices)

    @property
    def chosen(self) -> Choice:
        return self._choices[self._index]

    def offer(self, completion: Completion, cursor: Offset) -> None:
        """Show these, their first letters under those that were typed; none: close."""
        self.begun, self._choices = completion
        self._index, self.is_touched = 0, False
        self.display = self.is_open
        if self.is_open:
            names, kinds = (max(map(text_width, texts)) for texts in zip(*self._choices, strict=True))
            self.styles.width = min(names, _WIDEST) + kinds + 3
            self.styles.height = min(len(self._choices), _MOST_LINES)
            self.absolute_offset = cursor + Offset(-text_width(self.begun) - 1, 1)
            self.refresh(layout=True)

    def close(self) -> None:
        self.offer(Completion("", []), Offset())

    def step(self, by: int) -> None:
        self.is_touched = True
        self._index = (self._index + by) % len(self._choices)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.get_component_rich_style("popup--ground")
        index = y + max(0, self._index - self.size.height + 1)
        if index >= len(self._choices):
            return Strip.blank(width, ground)
        choice = self._choices[index]
        kind = f"{choice.kind} "
        look = self.get_component_rich_style("popup--chosen") if index == self._index else ground
        name = laid(f" {visible(choice.text)}", max(0, width - text_width(kind) - 1), "left")
        kind_look = look if index == self._index else ink(self, "popup--kind")
        return line([(f"{name} ", look), (kind, kind_look)], width, ground)

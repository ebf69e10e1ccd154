"""The last line of a screen: the keys that matter here, greyed out where they cannot be used now. A click is the key.

textual's own Footer is a container that recomposes at every change: 40 ms a keystroke on a slow machine. This is one
widget that draws one line.
"""

from typing import ClassVar

from textual import events
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.cells import text_width
from dflash_tui.ui.cells import ink, line

PALETTE = "command_palette"


class KeyLine(Widget):
    """Shows the bindings of its screen that have `show`, and the palette's on the right.

    While a person types, the single letters are text and not shown.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--ground", "keys--key", "keys--word", "keys--off"}

    def __init__(self) -> None:
        super().__init__()
        self._places: list[tuple[range, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_updated)

    def _bindings_updated(self, screen: Screen[object]) -> None:
        if screen is self.screen:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        key_look, word_look, off_look = (ink(self, f"keys--{name}") for name in ("key", "word", "off"))
        palette = ""
        words: list[tuple[str, str, str, bool]] = []
        seen: set[str] = set()
        focused = self.screen.focused
        is_typing = focused is not None and focused.check_consume_key("a", "a")
        for _, binding, is_enabled, _ in self.screen.active_bindings.values():
            display = self.app.get_key_display(binding)
            if binding.action == PALETTE:
                palette = f"{display} palette "
            if not binding.show or binding.action in seen or (is_typing and len(display) == 1):
                continue
            seen.add(binding.action)
            words.append((f" {display}", f" {binding.description} ", binding.key, is_enabled))
        # The last is the help, which tells of those that find no room.
        while len(words) > 1 and sum(text_width(key + word) for key, word, _, _ in words) > self.size.width:
            del words[-2]
        pieces = []
        self._places = []
        column = 0
        for key, word, name, is_enabled in words:
            pieces += [(key, key_look if is_enabled else off_look), (word, word_look if is_enabled else off_look)]
            width = text_width(key + word)
            self._places.append((range(column, column + width), name))
            column += width
        rest = self.size.width - column - text_width(palette)
        if palette and rest >= 0:
            pieces += [(" " * rest, word_look), (palette, key_look)]
            self._places.append((range(column + rest, self.size.width), self.app.COMMAND_PALETTE_BINDING))
        return line(pieces, self.size.width, self.get_component_rich_style("keys--ground"))

    def on_click(self, event: events.Click) -> None:
        for place, key in self._places:
            if event.x in place:
                self.app.simulate_key(key)

"""Where SQL is written: coloured by its tokens, names completed as they are typed, a place marked where it is wrong.

Colours are of our own tokens: a grammar by tree-sitter would be another two packages and 30 ms.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from dflash_tui.ui import sql_text
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.completion import Completion
from dflash_tui.ui.completion_popup import CompletionPopup
from dflash_tui.ui.sql_text import KEYWORDS, Statement

_COLOURED = ("comment", "string", "number", "parameter")


class SqlEditor(TextArea):
    """`complete` says how a statement may go on between two parts of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "text_end(False)", "first line", show=False),
        Binding("ctrl+end", "text_end(True)", "last line", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"sql--{kind}" for kind in (*_COLOURED, "keyword", "wrong")}

    def __init__(self, popup: CompletionPopup, complete: Callable[[str, str], Completion], id: str) -> None:
        super().__init__(id=id, compact=True, show_line_numbers=True, soft_wrap=True, highlight_cursor_line=False)
        self._popup = popup
        self._complete = complete
        self._is_typing = False
        self._wrong: range | None = None
        self._seen = ""
        self._looks: dict[int, list[tuple[int, int, str]]] = {}

    @property
    def place(self) -> int:
        """Where the cursor is in the text."""
        return self._offset(self.cursor_location)

    def _offset(self, location: tuple[int, int]) -> int:
        row, column = location
        return sum(len(line) + 1 for line in self.document.lines[:row]) + column

    @property
    def statement(self) -> Statement | None:
        """The one under the cursor."""
        return sql_text.statement_at(self.text, self.place)

    @property
    def selected(self) -> Statement | None:
        """What is selected, as if it were the whole text."""
        text = self.selected_text
        return Statement(self._offset(min(self.selection)), text) if text.strip() else None

    def action_text_end(self, is_last: bool) -> None:
        self.move_cursor(self.document.end if is_last else (0, 0))

    def write(self, text: str) -> None:
        """All of it anew, as one change that can be taken back; the cursor behind its last statement."""
        self.replace(text, (0, 0), self.document.end)
        last = sql_text.statements(text)[-1:]
        place = last[0].start + len(last[0].text) if last else len(text)
        self.move_cursor(sql_text.line_and_column(text, place))

    def mark_wrong(self, place: int | None) -> None:
        """Underline the word that begins there, until the text is another; None: nothing."""
        self._wrong = None if place is None else range(place, place + max(1, len(sql_text.word_at(self.text, place))))
        self._seen = ""
        self.notify_style_update()
        self.refresh()

    def get_line(self, line_index: int) -> Text:
        text = super().get_line(line_index)
        if self.text != self._seen:
            self._read_looks()
        for start, stop, look in self._looks.get(line_index, ()):
            text.stylize(self._ink(look), start, stop)
        return text

    def _read_looks(self) -> None:
        """What is coloured, by its line."""
        text = self._seen = self.text
        self._looks = {}
        for token in sql_text.tokens(text):
            if token.kind in _COLOURED:
                self._colour(token.start, token.stop, f"sql--{token.kind}")
            elif token.kind == "word" and token.text.lower() in KEYWORDS:
                self._colour(token.start, token.stop, "sql--keyword")
        if self._wrong:
            self._colour(self._wrong.start, self._wrong.stop, "sql--wrong")

    def _colour(self, start: int, stop: int, look: str) -> None:
        row, column = sql_text.line_and_column(self._seen, start)
        for line in self._seen[start:stop].split("\n"):
            self._looks.setdefault(row, []).append((column, column + len(line), look))
            row, column = row + 1, 0

    def _ink(self, look: str) -> Style:
        style = self.get_component_rich_style(look)
        return Style(color=style.color, bold=style.bold, underline=style.underline)

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._wrong = None
        if self._is_typing:
            self._is_typing = False
            self._offer()

    def on_blur(self) -> None:
        self._popup.close()

    def _offer(self) -> None:
        statement = self.statement or Statement(0, self.text)
        place = max(0, self.place - statement.start)
        # Behind the statement, where its text ends in blanks.
        text = self.text[statement.start :][: max(place, len(statement.text))]
        self._popup.offer(self._complete(text[:place], text[place:]), self.cursor_screen_offset)

    async def _on_key(self, event: events.Key) -> None:
        self._is_typing = event.is_printable or (event.key == "backspace" and self._popup.is_open)
        if not self._popup.is_open:
            return
        if event.key in ("up", "down"):
            self._popup.step(-1 if event.key == "up" else 1)
        elif event.key == "tab" or (event.key == "enter" and self._popup.is_touched):
            self._accept()
        elif event.key == "escape":
            self._popup.close()
        else:
            if not self._is_typing:
                self._popup.close()
            return
        event.stop()
        event.prevent_default()

    def _accept(self) -> None:
        choice, begun = self._popup.chosen, self._popup.begun
        row, column = self.cursor_location
        end = "'" if choice.kind == "run" and not self.document.get_line(row)[column:].startswith("'") else ""
        self.replace(choice.text + end, (row, column - len(begun)), (row, column), maintain_selection_offset=False)
        self._popup.close()

    def action_copy(self) -> None:
        if self.selected_text:
            copy(self, self.selected_text, "the selected text")

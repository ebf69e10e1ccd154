"""The two prompts of the Query screen: a file to write an answer into, a name for a panel."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.output.formats import ENDINGS
from dflash_tui.store.own_panel import place_of
from dflash_tui.text import did_you_mean, visible
from dflash_tui.ui.dialog import Dialog


class PlacePrompt(Dialog[str | None]):
    """Dismissed with what was typed. `doubt` says what Enter must be pressed twice for, or raises a UsageError."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave", tooltip="Write nothing."),
    ]

    def __init__(self, title: str, hint: str, value: str, doubt: Callable[[str], str]) -> None:
        super().__init__()
        self._title, self._hint, self._value, self._doubt = title, hint, value, doubt
        self._confirmed = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._title), classes="dialog-title")
            yield Input(self._value, compact=True)
            yield Static(classes="error")
            yield Static(Content(self._hint), classes="hint")
            yield Static("enter write   esc leave", classes="dialog-keys")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        words = event.value.strip()
        try:
            doubt = self._doubt(words)
        except UsageError as e:
            self._say(str(e))
            return
        if doubt and self._confirmed != words:
            self._confirmed = words
            self._say(doubt)
        else:
            self.dismiss(words)

    def _say(self, words: str) -> None:
        self.query_one(".error", Static).update(Content(visible(words)))


def file_of(words: str) -> Path:
    """The file that is meant; UsageError for a folder, and for an ending that no format has."""
    file = Path(words).expanduser().absolute()
    if not words or file.is_dir():
        raise UsageError(f"{file} is a folder: name a file in it")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}")
    if file.suffix and file.suffix.lower() not in ENDINGS:
        raise UsageError(f"no format ends with {file.suffix}: {did_you_mean(file.suffix.lower(), ENDINGS)}")
    return file


def _doubt_file(words: str) -> str:
    file = file_of(words)
    return f"{file} is there already: Enter again replaces it" if file.exists() else ""


def _doubt_panel(name: str) -> str:
    file = place_of(name)
    if file.exists():
        return f"{file} is there already: Enter again replaces it"
    is_bundled = (paths.bundled("sql") / "panels" / file.name).exists()
    return f"{name} is a panel that comes with dflash-tui: Enter again puts this one in its place" if is_bundled else ""


def file_prompt() -> PlacePrompt:
    hint = f"The ending names the format: {' '.join(ENDINGS)}. All rows are written, also those that are not kept here."
    return PlacePrompt("Write the answer into a file", hint, "query.csv", _doubt_file)


def panel_prompt() -> PlacePrompt:
    hint = "It is one .sql file in panels/ of the config folder, and stands on the Run screen at once."
    return PlacePrompt("Save this query as a panel called", hint, "", _doubt_panel)

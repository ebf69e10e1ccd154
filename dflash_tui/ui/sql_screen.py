"""The question that a panel asks: its SQL file as it stands on disk, and the help in its head. To read, to copy, and to
take along to the Query screen.
"""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from dflash_tui import paths
from dflash_tui.store.base import PanelResult
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.messages import QueryAsked
from dflash_tui.ui.query_subject import QuerySubject

KEYS = "e edit in Query   y copy   esc back   a panel of your own is one .sql file in panels/, beside config.toml"


class SqlScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back", tooltip="Back to the panels."),
        Binding("e,enter", "edit", "edit", tooltip="Edit it on the Query screen, of this run and window."),
        Binding("y", "copy", "copy", tooltip="Copy the SQL."),
    ]

    def __init__(self, result: PanelResult, subject: QuerySubject) -> None:
        super().__init__()
        self._result, self._subject = result, subject
        self._file = panel_file(result.name)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog page"):
            yield Static(Content(f"{visible(self._result.title)}: {self._file}"), classes="dialog-title")
            if self._result.state == "failed":
                yield Static(Content(visible(self._result.why or "")), classes="error")
            yield TextArea(self._sql(), read_only=True, show_line_numbers=True, compact=True)
            yield Static(KEYS, classes="dialog-keys")

    def _sql(self) -> str:
        try:
            return visible(self._file.read_text(encoding="utf-8"), keep="\n\t")
        except (OSError, UnicodeDecodeError) as e:
            return f"-- cannot be read: {e}"

    def action_edit(self) -> None:
        self.app.post_message(QueryAsked(self._sql(), self._subject))
        self.dismiss()

    def action_copy(self) -> None:
        copy(self, self._sql(), "the SQL")


def panel_file(name: str) -> Path:
    """Where the panel's SQL lies: a person's own goes before the bundled one of that name."""
    own = paths.config_dir() / "panels" / f"{name}.sql"
    return own if own.is_file() else paths.bundled("sql") / "panels" / f"{name}.sql"

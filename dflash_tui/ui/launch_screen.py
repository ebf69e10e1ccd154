"""The form of a new run: recipe, host, name, settings; beside them the config that will run. ctrl+s launches.

Owns the fields. What they make together stands in `recipe_draft`, how a run is started in `control`.
"""

import time
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Select, Static, TextArea
from textual.worker import Worker

from dflash_tui import recipes
from dflash_tui.config import LOCAL
from dflash_tui.errors import DflashError
from dflash_tui.text import duration, visible
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.recipe_draft import Draft, config_lines, draft, hint, settings_of
from dflash_tui.ui.screen import HEIGHTS, WIDTHS, raise_or_tell, tell
from dflash_tui.ui.seat import Seat

A_FILE = ""
KEYS = "ctrl+s launch   tab next field   esc cancel"


class LaunchScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "launch", "launch", priority=True, tooltip="Check, push, start: the run goes on by itself."),
        Binding("escape", "dismiss", "cancel", tooltip="Back; a launch under way goes on."),
    ]
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, seat: Seat, host: str | None = None) -> None:
        """`host` is chosen at first; without it, the last one that was launched on."""
        super().__init__()
        self._seat = seat
        self._first_host = host
        self._draft = Draft({})
        self._began_at: float | None = None

    def compose(self) -> ComposeResult:
        names = recipes.bundled_names()
        last = self._seat.last_launch()
        hosts = sorted(self._seat.config.hosts, key=lambda name: name != LOCAL)
        recipe = last.recipe if last and last.recipe in names else (names or [A_FILE])[0]
        wanted = self._first_host or (last.host if last else None)
        host = wanted if wanted in hosts else LOCAL
        with Vertical(classes="dialog page launch"):
            yield Static("New run", classes="dialog-title")
            with Horizontal(id="launch-body"):
                with VerticalScroll(id="launch-fields", can_focus=False):
                    yield Label("recipe")
                    options = [*((visible(name), name) for name in names), ("a file ...", A_FILE)]
                    yield Select(options, value=recipe, allow_blank=False, compact=True, id="recipe")
                    yield Input(placeholder="path of a .toml file", compact=True, id="path")
                    yield Static(id="recipe-error", classes="error")
                    yield Label("host")
                    yield Select(
                        [(visible(h), h) for h in hosts], value=host, allow_blank=False, compact=True, id="host"
                    )
                    yield Static(id="host-note", classes="error")
                    yield Label("name")
                    yield Input(placeholder="as the recipe", compact=True, id="name")
                    yield Label("settings (key=value)")
                    yield TextArea(compact=True, tab_behavior="focus", id="settings")
                    yield Static(id="settings-error", classes="error")
                    yield Static(id="settings-hint", classes="hint")
                with VerticalScroll(id="launch-config", can_focus=True):
                    yield Static(id="config-lines")
            yield Static(id="launch-progress")
            yield Static(KEYS, classes="dialog-keys")

    def on_mount(self) -> None:
        self.set_interval(1, self._show_progress)
        self.set_interval(1, self._show_silence)
        self._check()
        self._show_silence()
        self.query_one("#recipe").focus()

    @property
    def _is_file(self) -> bool:
        return self.query_one("#recipe", Select).value == A_FILE

    @property
    def _recipe(self) -> str:
        if self._is_file:
            return self.query_one("#path", Input).value.strip()
        return str(self.query_one("#recipe", Select).value)

    @property
    def _settings(self) -> tuple[str, ...]:
        return settings_of(self.query_one("#settings", TextArea).text)

    @on(Select.Changed, "#recipe")
    def _recipe_chosen(self, event: Select.Changed) -> None:
        self._check()
        if event.value == A_FILE:
            self.query_one("#path").focus()

    @on(Select.Changed, "#host")
    def _show_silence(self) -> None:
        """What is known to be wrong with the host that is chosen."""
        silence = self._seat.contact(str(self.query_one("#host", Select).value))
        note = self.query_one("#host-note", Static)
        note.display = silence is not None
        note.update(Content(visible(silence or "")))

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _check(self) -> None:
        """Check the fields as they are, at every keystroke."""
        self.query_one("#path").display = self._is_file
        self._draft = draft(self._recipe, self._settings)
        for field in ("recipe", "settings"):
            trouble = self._draft.trouble if self._draft.field == field else ""
            error = self.query_one(f"#{field}-error", Static)
            error.display = bool(trouble)
            error.update(Content(visible(trouble)))
        lines = [
            Content.assemble(("* ", "bold") if is_changed else "  ", (text, "bold" if is_changed else ""))
            for text, is_changed in config_lines(self._draft)
        ]
        self.query_one("#config-lines", Static).update(Content("\n").join(lines))

    @on(TextArea.SelectionChanged)
    def _show_hint(self, event: TextArea.SelectionChanged) -> None:
        row, _ = event.selection.end
        self.query_one("#settings-hint", Static).update(Content(hint(event.text_area.document.get_line(row))))

    def action_launch(self) -> None:
        self._check()
        if self._draft.trouble:
            is_path = self._draft.field == "recipe" and self.query_one("#path").display
            self.query_one("#path" if is_path else f"#{self._draft.field}").focus()
            self.app.bell()
        elif self._began_at is None:
            self._began_at = time.monotonic()
            self._show_progress()
            # Owned by the app: closing the form must not cut a launch in the middle.
            self.app.run_worker(self._launch(), group="control", exit_on_error=False)

    async def _launch(self) -> None:
        from dflash_tui.control import LaunchRequest

        name = self.query_one("#name", Input).value.strip() or None
        host = str(self.query_one("#host", Select).value)
        # `L` may be pressed from another folder.
        recipe = str(Path(self._recipe).expanduser().absolute()) if self._is_file else self._recipe
        try:
            request = LaunchRequest(recipe, host, name, self._settings)
            record = await self._seat.launch(request, lambda words: tell(self, words, "warning"))
        except DflashError as e:
            if not self.is_running:
                raise
            self._began_at = None
            self._tell_progress(str(e), is_error=True)
            return
        tell(self, f"{record.name} runs on {record.host}")
        if self.is_running and self.is_active:
            self.app.post_message(RunOpened(record.run_id))
            self.dismiss()

    def _show_progress(self) -> None:
        if self._began_at is not None:
            host = self.query_one("#host", Select).value
            since_s = time.monotonic() - self._began_at
            self._tell_progress(f"launching on {host}: checking, pushing, starting ... {duration(since_s)}")

    def _tell_progress(self, words: str, *, is_error: bool = False) -> None:
        progress = self.query_one("#launch-progress", Static)
        progress.set_class(is_error, "error")
        progress.update(Content(visible(words)))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

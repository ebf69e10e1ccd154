"""The form of a new run, or of one like another: recipe, host, name, settings; beside them the config that will run,
below what the host says to it. ctrl+s launches.

Owns the fields. What they make together stands in `recipe_draft`, how a run is started in `control`.
"""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Select, Static, TextArea
from textual.worker import Worker

from dflash_tui import recipes
from dflash_tui.config import LOCAL
from dflash_tui.errors import DflashError
from dflash_tui.output.plan import plan_lines
from dflash_tui.remote.inputs import Named, inputs
from dflash_tui.runs import RunRecord
from dflash_tui.text import duration, visible
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.recipe_draft import Draft, config_lines, draft, draft_clone, hint, settings_of, with_env
from dflash_tui.ui.screen import HEIGHTS, WIDTHS, raise_or_tell, tell
from dflash_tui.ui.seat import Seat

if TYPE_CHECKING:
    from dflash_tui.remote.plan import LaunchPlan

A_FILE = ""
# What runs on any machine, of a person who has launched nothing yet.
FIRST_RECIPE = "tiny"
# A path that is still typed is not asked for.
TYPING_S = 0.5
KEYS = "ctrl+s launch   tab next field   esc cancel"


class LaunchScreen(Dialog[None]):
    CSS_PATH = "launch.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "launch", "launch", priority=True, tooltip="Check, push, start: the run goes on by itself."),
        Binding("escape", "dismiss", "cancel", tooltip="Back; a launch under way goes on."),
    ]
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(
        self, seat: Seat, host: str | None = None, origin: RunRecord | None = None, name: str | None = None
    ) -> None:
        """`host` is chosen at first; without it, the last one that was launched on. `origin` is what is cloned, `name`
        what its clone may be called."""
        super().__init__()
        self._seat = seat
        self._origin = origin
        self._first_name = name
        self._first_host = host or (origin.host if origin else None)
        self._draft = Draft({})
        self._plan: LaunchPlan | None = None
        self._asked: tuple[str, list[Named]] | None = None
        self._began_at: float | None = None

    def compose(self) -> ComposeResult:
        hosts = sorted(self._seat.config.hosts, key=lambda name: name != LOCAL)
        last = self._seat.last_launch()
        wanted = self._first_host or (last.host if last else None)
        host = wanted if wanted in hosts else LOCAL
        title = f"A run like {visible(self._origin.name)}" if self._origin else "New run"
        with Vertical(classes="dialog page launch"):
            yield Static(Content(title), classes="dialog-title")
            with Horizontal(id="launch-body"):
                with VerticalScroll(id="launch-fields", can_focus=False):
                    yield from self._compose_origin(last.recipe if last else None)
                    yield Static(id="recipe-error", classes="error")
                    yield Label("host")
                    yield Select(
                        [(visible(h), h) for h in hosts], value=host, allow_blank=False, compact=True, id="host"
                    )
                    yield Static(id="host-note", classes="error")
                    yield Label("name")
                    placeholder = "as that run" if self._origin else "as the recipe"
                    yield Input(self._first_name, placeholder=placeholder, compact=True, id="name")
                    yield Label("settings (key=value lines)")
                    yield TextArea(compact=True, tab_behavior="focus", id="settings")
                    yield Static(id="settings-error", classes="error")
                    yield Static(id="settings-hint", classes="hint")
                    for label, field, example in (
                        ("GPUs", "gpus", "such as 0,1"),
                        ("env file", "env-file", "NAME=value lines"),
                    ):
                        # Above, where the last one's is in sight at 80x24 too.
                        yield Static(id=f"{field}-error", classes="error")
                        with Horizontal(classes="launch-row"):
                            yield Label(label)
                            yield Input(placeholder=example, compact=True, id=field)
                with VerticalScroll(id="launch-config", can_focus=True):
                    yield Static(id="config-lines")
            yield Static(id="launch-plan")
            yield Static(id="launch-progress")
            yield Static(KEYS, classes="dialog-keys")

    def _compose_origin(self, last: str | None) -> ComposeResult:
        """What the config begins with: a recipe, or a run's config."""
        if self._origin:
            yield Label("config of")
            yield Static(Content(visible(self._origin.run_id)), id="origin")
            return
        names = recipes.bundled_names()
        options = [*((visible(name), name) for name in names), ("a file ...", A_FILE)]
        recipe = next((name for name in (last, FIRST_RECIPE, *names) if name in names), A_FILE)
        yield Label("recipe")
        yield Select(options, value=recipe, allow_blank=False, compact=True, id="recipe")
        yield Input(placeholder="path of a .toml file", compact=True, id="path")

    def on_mount(self) -> None:
        self.set_interval(1, self._show_progress)
        self.set_interval(1, self._show_silence)
        self._check()
        self._show_silence()
        self.query_one("#settings" if self._origin else "#recipe").focus()

    @property
    def _is_file(self) -> bool:
        return self._origin is None and self.query_one("#recipe", Select).value == A_FILE

    @property
    def _recipe(self) -> str:
        if self._is_file:
            return self.query_one("#path", Input).value.strip()
        return str(self.query_one("#recipe", Select).value)

    @property
    def _settings(self) -> tuple[str, ...]:
        return settings_of(self.query_one("#settings", TextArea).text)

    @property
    def _env(self) -> tuple[str | None, str | None]:
        """The GPUs it may see and the file of its environment, each if given."""
        gpus, env_file = (self.query_one(field, Input).value.strip() for field in ("#gpus", "#env-file"))
        return gpus or None, str(Path(env_file).expanduser().absolute()) if env_file else None

    @on(Select.Changed, "#recipe")
    def _recipe_chosen(self, event: Select.Changed) -> None:
        self._check()
        if event.value == A_FILE:
            self.query_one("#path").focus()

    @property
    def _host(self) -> str:
        return str(self.query_one("#host", Select).value)

    @on(Select.Changed, "#host")
    def _host_chosen(self) -> None:
        self._show_silence()
        self._look()

    def _look(self, after_s: float = 0) -> None:
        """Asks the host again, unless it was asked the same."""
        training = recipes.nest(self._draft.config)
        asked = self._host, inputs(training)
        if asked != self._asked:
            self._asked = asked
            looking = self._look_at(self._host, training, after_s)
            self.run_worker(looking, group="plan", exclusive=True, exit_on_error=False)

    async def _look_at(self, host: str, training: dict[str, Any], after_s: float) -> None:
        """What a launch would meet there, and what it would run."""
        await asyncio.sleep(after_s)
        told = self.query_one("#launch-plan", Static)
        told.remove_class("error")
        told.update(Content(visible(f"looking at {host} ...")))
        self._plan = None
        try:
            self._plan = await self._seat.plan(host, training)
        except DflashError as e:
            told.add_class("error")
            told.update(Content(f"✗ {visible(str(e))}"))
        else:
            self._show_plan()

    def _show_plan(self) -> None:
        if self._plan is not None:
            lines = plan_lines(replace(self._plan, env=self._draft.env))
            self.query_one("#launch-plan", Static).update(Content("\n".join(lines)))

    def _show_silence(self) -> None:
        """What is known to be wrong with the host that is chosen."""
        silence = self._seat.contact(self._host)
        note = self.query_one("#host-note", Static)
        note.display = silence is not None
        note.update(Content(visible(silence or "")))

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _check(self) -> None:
        """Check the fields as they are, at every keystroke."""
        if self._origin:
            made = draft_clone(self._origin.config or {}, self._origin.name, self._settings)
        else:
            self.query_one("#path").display = self._is_file
            made = draft(self._recipe, self._settings)
        self._draft = with_env(made, *self._env)
        self._show_plan()
        if self._asked:
            self._look(TYPING_S)
        for field in ("recipe", "settings", "gpus", "env-file"):
            trouble = self._draft.trouble if self._draft.where == field else ""
            error = self.query_one(f"#{field}-error", Static)
            error.display = bool(trouble)
            error.update(Content(visible(trouble)))
        lines = [
            Content.assemble(("* ", "bold") if is_changed else "  ", (text, "bold" if is_changed else ""))
            for text, is_changed in config_lines(self._draft)
        ]
        self.query_one("#config-lines", Static).update(Content("\n").join(lines))
        if self._draft.trouble and self.focused:
            # What is wrong takes lines, and may push the field that is typed in out of sight.
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    @on(TextArea.SelectionChanged)
    def _show_hint(self, event: TextArea.SelectionChanged) -> None:
        row, _ = event.selection.end
        self.query_one("#settings-hint", Static).update(Content(hint(event.text_area.document.get_line(row))))

    def action_launch(self) -> None:
        self._check()
        if self._draft.trouble:
            self.query_one(self._wrong_field).focus()
            self.app.bell()
        elif self._began_at is None:
            self._began_at = time.monotonic()
            self._show_progress()
            # Owned by the app: closing the form must not cut a launch in the middle.
            self.app.run_worker(self._launch(), group="control", exit_on_error=False)

    @property
    def _wrong_field(self) -> str:
        if self._draft.where == "recipe" and not self._origin:
            return "#path" if self._is_file else "#recipe"
        return "#settings" if self._draft.where == "recipe" else f"#{self._draft.where}"

    async def _launch(self) -> None:
        from dflash_tui.requests import CloneRequest, LaunchRequest

        def warn(words: str) -> None:
            tell(self, words, "warning")

        name = self.query_one("#name", Input).value.strip() or None
        gpus, env_file = self._env
        try:
            if self._origin:
                clone = CloneRequest(self._origin.run_id, self._settings, None, self._host, name, gpus, env_file)
                record = await self._seat.clone(clone, warn)
            else:
                # `L` may be pressed from another folder.
                recipe = str(Path(self._recipe).expanduser().absolute()) if self._is_file else self._recipe
                request = LaunchRequest(recipe, self._host, name, self._settings, gpus, env_file)
                record = await self._seat.launch(request, warn)
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
            since_s = time.monotonic() - self._began_at
            self._tell_progress(f"launching on {self._host}: checking, pushing, starting ... {duration(since_s)}")

    def _tell_progress(self, words: str, *, is_error: bool = False) -> None:
        progress = self.query_one("#launch-progress", Static)
        progress.set_class(is_error, "error")
        progress.update(Content(visible(words)))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

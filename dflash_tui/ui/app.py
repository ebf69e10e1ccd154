"""The session: modes, themes, the seat at the store, and how it all ends. Screens do the rest.

Owns what is true on every screen (going between screens, a new run, theme, help, palette, quitting). Messages of a
screen are handled in that screen.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.console import Console
from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker

from dflash_tui import config
from dflash_tui.errors import DflashError
from dflash_tui.ui import themes
from dflash_tui.ui.commands import ActionCommands, RunCommands
from dflash_tui.ui.crash import keep_crash
from dflash_tui.ui.messages import LaunchAsked, QueryAsked, QueryLeft, RunAdvanced, RunLeft, RunOpened
from dflash_tui.ui.person import SessionPerson
from dflash_tui.ui.runs_screen import RunsScreen
from dflash_tui.ui.screen import MainScreen, raise_or_tell, tell
from dflash_tui.ui.seat import Seat, SessionSeat
from dflash_tui.ui.typed_keys import TypedKeys

if TYPE_CHECKING:
    from dflash_tui.alerts import Alert
    from dflash_tui.requests import LaunchRequest
    from dflash_tui.ui.logs_screen import LogsScreen
    from dflash_tui.ui.query_screen import QueryScreen
    from dflash_tui.ui.run_screen import RunScreen

RUNS, RUN, HOSTS, QUERY, LOGS, COMPARE = "runs", "run", "hosts", "query", "logs", "compare"


class DflashApp(App[None], inherit_bindings=False):
    """`open_seat` makes the seat, given what to call when something advanced; `run_id` is shown at once."""

    TITLE = "dflash-tui"
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = RUNS
    COMMANDS: ClassVar[set[Any]] = {ActionCommands, RunCommands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "show_runs", "runs", show=False, tooltip="The list of runs."),
        Binding("2", "show_run", "run", show=False, tooltip="The dashboard of the run you are at."),
        Binding("3", "show_hosts", "hosts", show=False, tooltip="The hosts and their containers, and how each stands."),
        Binding("4", "show_query", "query", show=False, tooltip="Ask with SQL; $run is the run you are at."),
        Binding("5", "show_logs", "logs", show=False, tooltip="The log of the run you are at, and its output."),
        Binding("6", "compare", "compare", show=False, tooltip="The marked runs side by side."),
        Binding("n", "new_run", "new", show=False, tooltip="A new run: choose a recipe and a host."),
        Binding("tilde", "command_log", "commands", show=False, key_display="~", tooltip="What was run on hosts."),
        Binding("t", "theme", "theme", show=False, tooltip="Choose the colours."),
        Binding("question_mark,f1", "help", "help", key_display="?", tooltip="What this screen is, and its keys."),
        Binding("q", "quit", "quit", show=False, tooltip="Leave. Runs go on: quitting never touches one."),
        Binding("ctrl+q", "quit", "quit", show=False, priority=True, tooltip="Leave, from anywhere."),
        Binding("ctrl+c", "help_quit", "", show=False, system=True),
    ]

    def __init__(
        self,
        open_seat: Callable[[Callable[[str | None], None]], Seat],
        run_id: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        for theme in themes.THEMES:
            self.register_theme(theme)
        # Before the first stylesheet is parsed: a change of theme later parses all of it again.
        self.theme = themes.remembered()
        self.animation_level = "none"
        # Tracebacks go into a file of ours (`live`), never over a person's prompt.
        self.error_console = Console(quiet=True)
        self.seat = open_seat(self._advanced)
        self.seat.person = SessionPerson(self)
        self.seat.alerted = self._alerted
        self._clock = clock
        self.fault: Exception | None = None
        """What ended the session, if it was not a person."""
        self._typed = TypedKeys(self)
        self._runs_screen = RunsScreen(self.seat, clock)
        self._first_run_id = run_id
        self._before_query = RUNS
        self._subject_id: str | None = None
        self.add_mode(RUNS, lambda: self._runs_screen)
        self.add_mode(RUN, lambda: self._run_screen)
        self.add_mode(HOSTS, self._hosts_screen)
        self.add_mode(QUERY, lambda: self._query_screen)
        self.add_mode(COMPARE, self._compare_screen)
        self._logs_screen: LogsScreen | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.chart_defaults(self.current_theme)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """None of textual's own: the palette lists our actions."""
        return ()

    def on_mount(self) -> None:
        self.run_worker(self._typed.hand_on(), group="keys", exit_on_error=False)
        self.run_worker(self._open_seat(), group="session", exit_on_error=False)

    async def on_event(self, event: events.Event) -> None:
        if not self._typed.holds(event):
            await super().on_event(event)

    async def _open_seat(self) -> None:
        try:
            await self.seat.open()
        except DflashError as e:
            self.fault = e
            self.exit(return_code=int(e.exit_code))
            return
        for notice in self.seat.notices:
            tell(self, notice, "warning")
        self._runs_screen.begin()
        if self._first_run_id is not None:
            self.open_run(self._first_run_id)

    def _advanced(self, run_id: str | None) -> None:
        """News from the session, on this loop: told to the screen looked at; the others ask when they come up."""
        if self.is_running and self.screen_stack:
            self.screen_stack[0].post_message(RunAdvanced(run_id))

    def _alerted(self, alert: "Alert | str") -> None:
        if isinstance(alert, str):
            tell(self, alert, "warning")
            return
        finding = alert.finding
        level: Literal["warning", "error"] = "error" if finding.severity == "critical" else "warning"
        tell(self, f"{finding.severity} in {alert.run.name}: {finding.sentence}", level)
        if self.seat.config.alerts.bell:
            self.bell()

    def open_run(self, run_id: str) -> None:
        self._run_screen.show(run_id, self._runs_screen.name_of(run_id))
        self._runs_screen.select(run_id)
        self.switch_mode(RUN)

    @on(RunOpened)
    def _run_opened(self, event: RunOpened) -> None:
        self.open_run(event.run_id)

    @property
    def subject_id(self) -> str | None:
        """The run that a person is at: of the screen looked at, else of the last one that was about a run."""
        screen = self.screen_stack[0]
        if isinstance(screen, MainScreen):
            self._subject_id = screen.subject_id or self._subject_id
        return self._subject_id

    def _go(self, mode: str) -> str | None:
        """Go to a screen, with the run that a person is at on the one that is left."""
        run_id = self.subject_id
        self.switch_mode(mode)
        return run_id

    @on(RunLeft)
    def action_show_runs(self) -> None:
        if (run_id := self._go(RUNS)) is not None:
            self._runs_screen.select(run_id)

    def action_show_run(self) -> None:
        if (run_id := self.subject_id) is not None:
            self.open_run(run_id)
        else:
            self.switch_mode(RUN)

    @cached_property
    def _run_screen(self) -> "RunScreen":
        from dflash_tui.ui.run_screen import RunScreen

        return RunScreen(self.seat, self._clock)

    def action_show_hosts(self) -> None:
        self._go(HOSTS)

    def action_show_logs(self) -> None:
        from dflash_tui.ui.logs_screen import LogsScreen

        if self._logs_screen is None:
            screen = self._logs_screen = LogsScreen(self.seat)
            self.add_mode(LOGS, lambda: screen)
        self._logs_screen.show(self._go(LOGS))

    def _hosts_screen(self) -> Screen[None]:
        from dflash_tui.ui.hosts_screen import HostsScreen

        return HostsScreen(self.seat, self._clock)

    @cached_property
    def _query_screen(self) -> "QueryScreen":
        from dflash_tui.ui.query_screen import QueryScreen

        return QueryScreen(self.seat, self._clock)

    def action_show_query(self) -> None:
        if self.current_mode != QUERY:
            self._before_query = self.current_mode
        self._query_screen.open(self._go(QUERY))

    @on(QueryAsked)
    def _query_asked(self, event: QueryAsked) -> None:
        self._before_query = RUN
        self._query_screen.edit(event)
        self.switch_mode(QUERY)

    @on(QueryLeft)
    def _query_left(self) -> None:
        self.switch_mode(self._before_query)

    def action_compare(self) -> None:
        self._go(COMPARE)

    def _compare_screen(self) -> Screen[None]:
        from dflash_tui.ui.compare_screen import CompareScreen

        return CompareScreen(self.seat, lambda: self._runs_screen.marked)

    def action_command_palette(self) -> None:
        from dflash_tui.ui.choices import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_command_log(self) -> None:
        from dflash_tui.ui.command_screen import CommandScreen

        if not isinstance(self.screen, CommandScreen):
            self.push_screen(CommandScreen(self.seat, self._clock))

    def action_new_run(self) -> None:
        from dflash_tui.ui.launch_screen import LaunchScreen

        self.push_screen(LaunchScreen(self.seat))

    def action_launch_again(self) -> None:
        request = self.seat.last_launch()
        if request is None:
            tell(self, "nothing was launched from here yet: choose a recipe and a host")
            self.action_new_run()
        else:
            self.launch(request)

    @on(LaunchAsked)
    def _launch_asked(self, event: LaunchAsked) -> None:
        self.launch(event.request)

    def launch(self, request: "LaunchRequest") -> None:
        """What was launched before, at once; the run is opened when it runs."""
        self.run_worker(self._launch_again(request), group="control", exit_on_error=False)

    async def _launch_again(self, request: "LaunchRequest") -> None:
        words = " ".join([request.recipe, *request.settings])
        tell(self, f"launching {words} on {request.host} again ...")
        record = await self.seat.launch(request, lambda words: tell(self, words, "warning"))
        tell(self, f"{record.name} runs on {record.host}")
        self.open_run(record.run_id)

    def action_theme(self) -> None:
        from dflash_tui.ui.theme_screen import ThemeScreen

        self.push_screen(ThemeScreen())

    def action_help(self) -> None:
        from dflash_tui.ui.help import HelpScreen

        self.push_screen(HelpScreen.of(self.screen))

    def parting_words(self) -> str | None:
        """What goes on without the session, for after it has left the screen."""
        running = [run.name for run in self._runs_screen.running]
        if not running:
            return None
        goes = "goes" if len(running) == 1 else "go"
        return f"left the session; {', '.join(running[:3])}{' and others' if len(running) > 3 else ''} {goes} on"

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        raise_or_tell(self, event)

    def _handle_exception(self, error: Exception) -> None:
        # Textual has no public hook for this; it would print the values of variables, which may hold secrets.
        self.fault = self.fault or error
        super()._handle_exception(error)


def run_app(run_id: str | None = None, *, mouse: bool = True) -> str | None:
    """Run the session, on the dashboard of `run_id` if given; returns a parting sentence.

    Raises the DflashError that ended it; a crash becomes one that names the log file.
    """
    app = DflashApp(lambda advanced: SessionSeat(config.load(), advanced), run_id)
    return asyncio.run(live(app, mouse=mouse))


async def live(app: DflashApp, *, headless: bool = False, mouse: bool = True) -> str | None:
    """The app from its first screen to the closed seat; the terminal is restored before the seat is closed."""
    try:
        await app.run_async(headless=headless, mouse=mouse)
    finally:
        await app.seat.close()
    if isinstance(app.fault, DflashError):
        raise app.fault
    if app.fault is not None:
        file = keep_crash(app.fault)
        raise DflashError(f"the session crashed ({type(app.fault).__name__}); runs are not touched; its log: {file}")
    return app.parting_words()

"""The command log: every argv that this session ran on a host, its end and the time it took; secrets are masked."""

import shlex
import time
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dflash_tui.hosts.journal import NUM_KEPT, Command
from dflash_tui.text import duration, visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.listing import Listing
from dflash_tui.ui.seat import Seat

NONE = ("Nothing was run on a host yet.", "A launch, a check, a live run to follow: each command will stand here.")
KEYS = "j k move   y copy   esc back"
REFRESH_S = 1.0
# More than any terminal shows in one line.
LINE_CHARACTERS = 400


class CommandRow(NamedTuple):
    command: Command
    now: float


@lru_cache(maxsize=NUM_KEPT)
def words(argv: tuple[str, ...]) -> str:
    """As it would be typed."""
    return visible(shlex.join(argv))


def _took(row: CommandRow) -> Cell:
    took_s = row.command.took_s
    if took_s is None:
        return Cell(duration(row.now - row.command.began), "tone--live")
    short = f"{took_s * 1000:.0f} ms" if took_s < 1 else f"{took_s:.1f} s" if took_s < 10 else duration(took_s)
    return Cell(short, "list--quiet")


def _end(row: CommandRow) -> Cell:
    command = row.command
    if command.took_s is None:
        return Cell("● running", "tone--live")
    if command.trouble:
        return Cell("✗ no answer", "tone--bad")
    if command.end is None:
        return Cell("○ left", "list--quiet")
    if command.end.signal is not None:
        return Cell(f"✗ signal {command.end.signal}", "tone--warn")
    return Cell(f"✓ {command.end.code}", "tone--good") if command.end.code == 0 else _failed(command.end.code)


def _failed(code: int | None) -> Cell:
    return Cell(f"✗ {'?' if code is None else code}", "tone--warn")


COLUMNS: tuple[Column[CommandRow], ...] = (
    Column("TIME", 8, lambda row: Cell(time.strftime("%H:%M:%S", time.localtime(row.command.time)), "list--quiet")),
    Column("HOST", 10, lambda row: Cell(visible(row.command.host)), widest=16, growth=1),
    Column("TOOK", 8, _took, "right"),
    Column("EXIT", 11, _end),
    Column("COMMAND", 20, lambda row: Cell(words(row.command.argv)[:LINE_CHARACTERS], "list--name"), takes_rest=True),
)


class CommandList(Listing[CommandRow]):
    COLUMNS = COLUMNS

    def row_id(self, row: CommandRow) -> str:
        return str(row.command.number)


class CommandScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,tilde,q", "dismiss", "back", tooltip="Back."),
        Binding("y", "copy", "copy", tooltip="Copy the command under the cursor."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seat, self._clock = seat, clock
        self._title = Static(classes="dialog-title")
        self._list = CommandList()
        self._detail = Static()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog page"):
            yield self._title
            yield self._list
            yield VerticalScroll(self._detail, id="command-below", can_focus=False)
            yield Static(KEYS, classes="dialog-keys")

    def on_mount(self) -> None:
        self._list.focus()
        self._show()
        self.set_interval(REFRESH_S, self._show)

    def _show(self) -> None:
        rows = [CommandRow(command, self._clock()) for command in reversed(self._seat.commands())]
        kept = f", the newest {NUM_KEPT}" if len(rows) == NUM_KEPT else ""
        whose = f"Commands of this session: {len(rows)}{kept}, newest first"
        if other := self._seat.collector():
            whose += f"\nLive runs are followed by {other}: what that runs on hosts is not among them."
        self._title.update(Content(whose))
        self._list.show_rows(rows, NONE)

    @on(CommandList.Moved)
    def _moved(self) -> None:
        row = self._list.selected
        if row is None:
            return
        trouble = f"\n{visible(row.command.trouble)}" if row.command.trouble else ""
        self._detail.update(Content(f"{visible(row.command.host)}: {words(row.command.argv)}{trouble}"))

    def action_copy(self) -> None:
        if self._list.selected is not None:
            copy(self, words(self._list.selected.command.argv), "the command")

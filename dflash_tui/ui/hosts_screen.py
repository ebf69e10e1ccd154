"""The Hosts screen: hosts and their containers, how each stands, and below them all that is known of one.

Owns which host is looked at. What is asked of hosts, and when, stands in `host_board`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.config import HostSpec
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import Run, RunState
from dflash_tui.text import visible
from dflash_tui.ui.clipboard import copy
from dflash_tui.ui.fresh import Freshener
from dflash_tui.ui.host_board import HostBoard
from dflash_tui.ui.host_columns import HostRow
from dflash_tui.ui.host_detail import detail
from dflash_tui.ui.host_list import HostList
from dflash_tui.ui.host_tree import Line, tree
from dflash_tui.ui.listing import HEADER_LINES
from dflash_tui.ui.messages import LaunchAsked
from dflash_tui.ui.screen import MainScreen, tell
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.typed_keys import OPENING

# The tree has at most this share of the screen: below it stands what is known of one host.
LIST_SHARE = 0.55
MIN_LIST_LINES = 4


class HostsScreen(MainScreen):
    CSS_PATH = "hosts.tcss"
    TITLE = "Hosts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c,enter", "check", "check", key_display="c", tooltip="Look at this host thoroughly; may ask."),
        Binding("n", "new_here", "new here", tooltip="A new run on this host: the form, with it chosen."),
        Binding("L", "again_here", "again here", tooltip="Launch the last recipe on this host, at once."),
        Binding("s", "shell", "shell", tooltip="A shell on this host, in this terminal; leave it to come back."),
        Binding("a", "add", "add", tooltip="Add a host: a name of ~/.ssh/config, an address, a container."),
        Binding("y", "copy", "copy", show=False, tooltip="Copy what is known of this host."),
        Binding("tab", "app.focus_next", "below", show=False, tooltip="To what is known of it, to scroll; and back."),
        Binding("escape", "app.show_runs", "back", show=False, tooltip="Back to the list of runs."),
    ]

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seat)
        self._clock = clock
        self._board = HostBoard(seat, self._show, clock)
        self._freshener = Freshener(self._refresh)
        self._runs: Sequence[Run] = ()
        self._seen_at = clock()
        self._trouble = ""
        self._title = Static(classes="title-line")
        self._list = HostList()
        self._detail = Static(id="host-detail")

    def body(self) -> Iterator[Widget]:
        yield from (self._title, self._list, VerticalScroll(self._detail, id="host-below"))

    def on_mount(self) -> None:
        self._list.focus()
        self.set_interval(1, lambda: self._show() if self.is_looked_at else None)
        self.when_idle(self._freshener.mark)
        self.run_worker(self._freshener.run(), group="runs", exclusive=True, exit_on_error=False)
        self.run_worker(self._board.watch(), group="board", exclusive=True, exit_on_error=False)

    @property
    def subject(self) -> Run | None:
        return None

    def on_screen_resume(self) -> None:
        self._board.want(True)
        self._freshener.mark()
        self.run_worker(self.seat.reload(), group="config", exit_on_error=False)

    def on_screen_suspend(self) -> None:
        self._board.want(self.is_looked_at)

    def on_run_advanced(self) -> None:
        self._freshener.mark()

    async def _refresh(self) -> None:
        try:
            self._runs = await self.seat.ask(lambda store: store.runs())
            self._seen_at, self._trouble = self._clock(), ""
        except DflashError as e:
            self._trouble = visible(str(e))
        self._show()

    def _show(self) -> None:
        if not self.is_mounted:
            return
        lines = tree(self.seat.config.hosts, self._board.containers())
        rows = [self._row(line) for line in lines]
        share = max(MIN_LIST_LINES, int(self.size.height * LIST_SHARE))
        self._list.styles.height = min(len(rows) + HEADER_LINES, share)
        self._list.show_rows(rows, ("No hosts yet.", "a adds one"))
        num_silent = sum(row.silent_s is not None for row in rows)
        parts = [f"Hosts {len(self.seat.config.hosts)}", f"{num_silent} without contact" if num_silent else ""]
        self._title.update(Content(" · ".join(filter(None, [*parts, self._trouble]))), layout=False)
        self._show_detail()

    def _row(self, line: Line) -> HostRow:
        now = self._clock()
        if line.spec is None:
            return HostRow(line, now, node=self._board.nodes.get(line.node or ""))
        silence = self.seat.contact(line.spec.name)
        if silence:
            self._board.doubt(line.spec.name)
        runs = [run for run in self._runs if run.host == line.spec.name]
        heard = [run.no_contact_s for run in runs if run.no_contact_s is not None]
        return HostRow(
            line,
            now,
            standing=self._board.hosts.get(line.spec.name),
            heard_s=min(heard) + now - self._seen_at if heard else None,
            num_live=sum(run.state != RunState.ABSENT and not RunState(run.state).is_over for run in runs),
            silence=silence,
        )

    def _show_detail(self) -> None:
        row = self._list.selected
        self._detail.update(detail(row) if row else "")

    @on(HostList.Moved)
    def _moved(self) -> None:
        self._show_detail()
        self.refresh_bindings()

    @property
    def _host(self) -> HostSpec | None:
        """The host under the cursor, if it is one."""
        return self._list.selected.line.spec if self._list.selected else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("stop", "resume")

    def action_check(self) -> None:
        row = self._list.selected
        if row is None:
            return
        if row.line.spec is not None:
            self.run_worker(self._board.check(row.line.spec.name), group="check", exit_on_error=False)
        elif row.line.node is not None:
            self._board.check_node(row.line.node)

    def action_new_here(self) -> None:
        from dflash_tui.ui.launch_screen import LaunchScreen

        if self._host is None:
            self._tell_no_host()
        else:
            self.app.push_screen(LaunchScreen(self.seat, self._host.name))

    def action_again_here(self) -> None:
        last = self.seat.last_launch()
        if self._host is None:
            self._tell_no_host()
        elif last is None:
            tell(self, "nothing was launched from here yet: choose a recipe")
            self.action_new_here()
        else:
            self.post_message(LaunchAsked(replace(last, host=self._host.name)))

    def _tell_no_host(self) -> None:
        # Not greyed out: the key would fall through to the one that launches on the last host.
        tell(self, "nothing runs there before it is a host: a adds it")

    def action_shell(self) -> None:
        from dflash_tui.hosts.doorway import shell_words
        from dflash_tui.ui.step_out import step_out

        spec = self._host or self._node_spec()
        if spec is None:
            return
        container = self._list.selected.line.container if self._list.selected else None
        if self._host is None and container is not None and container.node:
            tell(self, f"container {container.vmid} lives on the node {container.node}: a adds it there")
            return
        try:
            words = shell_words(spec)
        except UsageError as e:
            tell(self, str(e), "error")
        else:
            self.app.run_worker(step_out(self.app, words, spec.name), group=OPENING, exit_on_error=False)

    def _node_spec(self) -> HostSpec | None:
        """The node under the cursor, or that of the container under it, as a machine to log in to."""
        row = self._list.selected
        if row is None or row.line.node is None:
            return None
        address, container = row.line.node, row.line.container
        if container is None:
            return HostSpec(kind="ssh", name=address, address=address)
        return HostSpec(kind="proxmox", name=row.line.name, address=address, vmid=container.vmid)

    def action_add(self) -> None:
        from dflash_tui.ui.add_host_screen import AddHostScreen, Wish

        row = self._list.selected
        wish = Wish()
        if row is not None and row.line.spec is None and row.line.node is not None:
            container = row.line.container
            address = (container and container.node) or row.line.node
            wish = Wish(address, container.name if container else "", container.vmid if container else None)
        self.app.push_screen(AddHostScreen(self.seat, wish), self._added)

    def _added(self, name: str | None) -> None:
        if name is not None:
            self._list.select(f"host {name}")
            self._show()

    def action_copy(self) -> None:
        if self._list.selected is not None:
            copy(self, detail(self._list.selected).plain, f"what is known of {self._list.selected.line.name}")

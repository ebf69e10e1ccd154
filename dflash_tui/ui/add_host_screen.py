"""The form of a new host: a name of ~/.ssh/config or any address, or a container of it. It is reached, then written.

Owns the fields. What may stand in config.toml is `config`'s to say, how a host is reached `machines`'.
"""

import asyncio
import re
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Select, Static

from dflash_tui.config import LOCAL, Addition
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.hosts.ssh.address import parse_address
from dflash_tui.hosts.ssh.names import ssh_names
from dflash_tui.text import visible
from dflash_tui.ui.dialog import Dialog
from dflash_tui.ui.screen import HEIGHTS, WIDTHS, tell
from dflash_tui.ui.seat import Seat
from dflash_tui.ui.tick_box import TickBox

ANOTHER = ""
# Proxmox has none of more; Python reads no number of more than 4300 digits.
VMID_DIGITS = 9
KEYS = "ctrl+s reach and add   ctrl+o add unseen   tab next   esc cancel"


class Wish(NamedTuple):
    """What the fields begin with."""

    address: str = ""
    name: str = ""
    vmid: int | None = None


class AddHostScreen(Dialog[str | None]):
    """Dismissed with the name of the host that was added."""

    CSS_PATH = "hosts.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "add(True)", "add", priority=True, tooltip="Reach the host; if that works, write it down."),
        Binding("ctrl+o", "add(False)", "add unseen", priority=True, tooltip="Write it down without reaching it."),
        Binding("escape", "dismiss(None)", "cancel", tooltip="Add nothing."),
    ]
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, seat: Seat, wish: Wish) -> None:
        super().__init__()
        self._seat, self._wish = seat, wish
        self._is_busy = False

    def compose(self) -> ComposeResult:
        wish = self._wish
        used = {spec.address for spec in self._seat.config.hosts.values() if spec.kind == "ssh"}
        names = [] if wish.address else [name for name in ssh_names() if name not in used]
        options = [*((visible(name), name) for name in names), ("another address ...", ANOTHER)]
        with Vertical(classes="dialog"):
            yield Static("Add a host", classes="dialog-title")
            with VerticalScroll(id="add-fields", can_focus=False):
                yield Label("from ~/.ssh/config", id="known-label")
                yield Select(options, value=ANOTHER, allow_blank=False, compact=True, id="known")
                yield Label("address")
                yield _field("address", "user@host:port, or a name of ~/.ssh/config", wish.address)
                yield Label("container (vmid)")
                yield _field("vmid", "none: the machine itself", "" if wish.vmid is None else str(wish.vmid))
                yield TickBox("pct by sudo, for who is not root there", compact=True, id="sudo")
                yield Label("what it is called here")
                yield _field("name", "letters, digits, - and _", _name_of(wish.name or wish.address))
                yield Label("python")
                yield _field("python", "<workdir>/venv/bin/python if there, else python3")
                yield Label("workdir")
                yield _field("workdir", "~")
            yield Static(id="add-progress")
            yield Static(KEYS, classes="dialog-keys")

    def on_mount(self) -> None:
        is_known = len(self.query_one("#known", Select)._options) > 1
        for part in ("#known", "#known-label"):
            self.query_one(part).display = is_known
        self.query_one("#sudo").display = bool(self._wish.vmid)
        self.query_one("#known" if is_known else "#address").focus()

    @on(Select.Changed, "#known")
    def _chosen(self, event: Select.Changed) -> None:
        if event.value != ANOTHER:
            self.query_one("#address", Input).value = str(event.value)
            self.query_one("#name", Input).value = _name_of(str(event.value))

    @on(Input.Changed, "#vmid")
    def _vmid_typed(self, event: Input.Changed) -> None:
        self.query_one("#sudo").display = bool(event.value.strip())

    def _text(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()

    def _keys(self) -> dict[str, str | int | bool]:
        """What is to be written. UsageError if a field is none."""
        vmid = self._text("vmid")
        if vmid and not (vmid.isdecimal() and len(vmid) <= VMID_DIGITS):
            raise UsageError(f"container {visible(vmid)!r} is no number: `pct list` on the node shows them")
        address = self._text("address")
        if not (vmid and address == LOCAL):
            parse_address(address, "address")
        keys: dict[str, str | int | bool] = {"kind": "proxmox" if vmid else "ssh", "address": address}
        if vmid:
            keys["vmid"] = int(vmid)
            if self.query_one("#sudo", TickBox).value:
                keys["sudo"] = True
        return keys | {field: text for field in ("python", "workdir") if (text := self._text(field))}

    def action_add(self, reaches: bool) -> None:
        if not self._is_busy:
            self._is_busy = True
            self.run_worker(self._add(reaches=reaches), group="add", exit_on_error=False)

    async def _add(self, *, reaches: bool) -> None:
        try:
            addition = await asyncio.to_thread(Addition, self._text("name"), self._keys())
            if reaches:
                await self._reach(addition)
            await self._seat.add(addition)
        except DflashError as e:
            self._tell(str(e), is_error=True)
        else:
            tell(self, f"{addition.spec.name} was added")
            if self.is_active:
                self.dismiss(addition.spec.name)
        finally:
            self._is_busy = False

    async def _reach(self, addition: Addition) -> None:
        """DflashError when it cannot be reached."""
        self._tell(f"reaching {addition.spec.address} ...")
        unseen = "nothing was written: ctrl+o adds it unseen"
        try:
            findings = await self._seat.check(addition.spec)
        except DflashError as e:
            raise DflashError(f"{e}; {unseen}") from e
        for one in findings:
            if one.what == "reach" and not one.is_well:
                raise DflashError(f"{one.sentence}; {unseen}")

    def _tell(self, words: str, *, is_error: bool = False) -> None:
        progress = self.query_one("#add-progress", Static)
        progress.set_class(is_error, "error")
        progress.update(Content(visible(words)))


def _field(id: str, placeholder: str, value: str = "") -> Input:
    return Input(value, placeholder=placeholder, compact=True, id=id)


def _name_of(address: str) -> str:
    """A name for a host at `address`, as far as one may be made of it."""
    host = address.rpartition("@")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", host.partition(":")[0] if host.count(":") == 1 else host).strip("-")[:64]

"""What is known of each host: how it stood when last looked at, since when it is silent, what a check found.

Owns the pace of looking. Every host has a task of its own, so a slow one delays no other. Draws nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflash_tui.config import LOCAL, HostSpec
from dflash_tui.errors import DflashError
from dflash_tui.ui.seat import Seat

if TYPE_CHECKING:
    from dflash_tui.hosts.containers import Container
    from dflash_tui.machines import Look
    from dflash_tui.remote.check import Finding

LOOK_EVERY_S = 30.0
TICK_S = 0.5
DOUBT_S = 5.0
# Whom it refused has to do something first: knocking on would only have us banned there.
_REFUSALS = frozenset({"auth-failed", "key-unknown", "key-changed"})


@dataclass
class Standing:
    """Times are of the board's clock. `heard_at` is when it answered last, `silent_at` when it first did not since."""

    spec: HostSpec
    look: "Look | None" = None
    looked_at: float | None = None
    heard_at: float | None = None
    silent_at: float | None = None
    is_looking: bool = False
    check_began_at: float | None = None
    findings: "list[Finding]" = field(default_factory=list)
    trouble: str = ""
    """Why the last check said nothing of it."""

    @property
    def is_refused(self) -> bool:
        return self.look is not None and self.look.state in _REFUSALS


@dataclass
class NodeStanding:
    """What a Proxmox node told of its containers; `trouble` says why it told nothing."""

    containers: "list[Container]" = field(default_factory=list)
    looked_at: float | None = None
    is_looking: bool = False
    trouble: str = ""


class HostBoard:
    """`changed` is called on the loop whenever there is something new to show."""

    def __init__(self, seat: Seat, changed: Callable[[], None], clock: Callable[[], float]) -> None:
        self.hosts: dict[str, Standing] = {}
        self.nodes: dict[str, NodeStanding] = {}
        self._seat = seat
        self._changed = changed
        self._clock = clock
        self._wanted = asyncio.Event()
        self._found_nodes: dict[str, None] = {}
        """Hosts that a check found to be Proxmox nodes, though no container of them is a host."""

    def want(self, is_wanted: bool) -> None:
        """Whether anybody looks at the board: if not, no host is asked."""
        if is_wanted:
            self._wanted.set()
        else:
            self._wanted.clear()

    async def watch(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wanted.wait()
                self._follow_config()
                for standing in self.hosts.values():
                    if not standing.is_looking and not standing.is_refused and self._is_due(standing.looked_at):
                        standing.is_looking = True
                        group.create_task(self._look(standing))
                for address, node in self.nodes.items():
                    if not node.is_looking and self._is_due(node.looked_at):
                        node.is_looking = True
                        group.create_task(self._ask_node(address, node))
                await asyncio.sleep(TICK_S)

    async def check(self, name: str) -> None:
        """A thorough look at one host, which may ask its person; then a look for its figures."""
        self._follow_config()
        standing = self.hosts.get(name)
        if standing is None or standing.check_began_at is not None:
            return
        standing.check_began_at, standing.trouble, standing.findings = self._clock(), "", []
        self._changed()
        try:
            standing.findings = await self._seat.check(standing.spec)
            if any(one.what == "pct" for one in standing.findings):
                self._found_nodes[standing.spec.address or LOCAL] = None
        except DflashError as e:
            standing.trouble = str(e)
        finally:
            standing.check_began_at = None
            self._changed()
        await self._look(standing)

    def check_node(self, address: str) -> None:
        """Ask a node again, as soon as may be."""
        if node := self.nodes.get(address):
            node.looked_at = None

    def doubt(self, name: str) -> None:
        """Somebody else could not reach it: look at it soon, if it answered when last looked at."""
        standing = self.hosts.get(name)
        if standing and standing.look and standing.look.state == "reachable" and standing.looked_at is not None:
            standing.looked_at = min(standing.looked_at, self._clock() - LOOK_EVERY_S + DOUBT_S)

    def containers(self) -> "dict[str, list[Container]]":
        return {address: node.containers for address, node in self.nodes.items()}

    def _is_due(self, at: float | None) -> bool:
        return at is None or self._clock() - at >= LOOK_EVERY_S

    def _follow_config(self) -> None:
        """The hosts of config.toml as it is now; what is known of one that was changed there is forgotten."""
        specs = self._seat.config.hosts
        known = {name: standing for name, standing in self.hosts.items() if standing.spec == specs.get(name)}
        self.hosts = {name: known.get(name) or Standing(spec) for name, spec in specs.items()}
        addresses = dict.fromkeys(spec.address or "" for spec in specs.values() if spec.kind == "proxmox")
        addresses |= self._found_nodes
        self.nodes = {address: self.nodes.get(address) or NodeStanding() for address in addresses}

    async def _look(self, standing: Standing) -> None:
        try:
            look = await self._seat.look(standing.spec)
        finally:
            standing.is_looking = False
        standing.look, standing.looked_at = look, self._clock()
        if look.state == "reachable":
            standing.heard_at, standing.silent_at = standing.looked_at, None
        elif standing.silent_at is None:
            standing.silent_at = standing.looked_at
        self._changed()

    async def _ask_node(self, address: str, node: NodeStanding) -> None:
        known = (one for one in self._seat.config.hosts.values() if one.address == address and one.vmid)
        # Which of them is asked for does not matter: its node tells of all.
        spec = next(known, HostSpec(kind="proxmox", name=address, address=address, vmid=100))
        try:
            node.containers, node.trouble = await self._seat.containers(spec), ""
        except DflashError as e:
            node.trouble = str(e)
        finally:
            node.is_looking = False
        node.looked_at = self._clock()
        self._changed()

"""The tree of the Hosts screen: hosts of config.toml, under each Proxmox node its containers. Pure; draws nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dflash_tui.config import LOCAL, HostSpec
from dflash_tui.hosts.containers import Container


@dataclass(frozen=True, slots=True)
class Line:
    """A host (`spec`), a Proxmox node that is no host itself (`node`), or a container that is none yet (`container`).

    `branch` draws where it hangs. A host's `container` is what its node says of it, if it is one.
    """

    row_id: str
    name: str
    branch: str = ""
    spec: HostSpec | None = None
    node: str | None = None
    container: Container | None = None


def tree(hosts: Mapping[str, HostSpec], containers: Mapping[str, Sequence[Container]]) -> list[Line]:
    """`local` first, then the order of the file; `containers` are those that the node at an address told of.

    Each node of a cluster tells of all its containers: one is listed where it lives, if that node is here, else once.
    """
    ordered = sorted(hosts.values(), key=lambda spec: spec.name != LOCAL)
    tops: dict[str, Line] = {}
    for spec in ordered:
        if spec.kind != "proxmox":
            address = LOCAL if spec.kind == "local" else spec.address or ""
            # Two hosts may be one machine: its containers hang under the first.
            line = Line(f"host {spec.name}", spec.name, "", spec)
            tops[address if address not in tops else line.row_id] = line
    for spec in ordered:
        if spec.kind == "proxmox" and spec.address and spec.address not in tops:
            tops[spec.address] = Line(f"node {spec.address}", spec.address, node=spec.address)
    listed = {(one.vmid, one.name) for told in containers.values() for one in told if one.node is None}
    lines = []
    for key, top in tops.items():
        below = list(_below(key, ordered, containers.get(key, ()), listed))
        lines.append(top)
        lines += [_hung(line, is_last=number == len(below)) for number, line in enumerate(below, 1)]
    return lines


def _below(
    address: str, hosts: Sequence[HostSpec], told: Sequence[Container], listed: set[tuple[int, str]]
) -> Iterator[Line]:
    """The containers of a node: those that are hosts, then those that are not, last those of its cluster that are not
    `listed` yet."""
    by_vmid = {one.vmid: one for one in told}
    known = set()
    # A node that is silent tells of none, and its containers may be hosts all the same.
    hosts_on = {((spec.address or "").rpartition("@")[2], spec.vmid) for spec in hosts if spec.kind == "proxmox"}
    for spec in hosts:
        if spec.kind == "proxmox" and spec.address == address:
            known.add(spec.vmid)
            container = by_vmid.get(spec.vmid or 0)
            yield Line(f"host {spec.name}", spec.name, spec=spec, node=address, container=container)
    for one in sorted(told, key=lambda one: one.node is not None):
        is_new = one.node is None or not ((one.vmid, one.name) in listed or (one.node, one.vmid) in hosts_on)
        if one.vmid not in known and is_new:
            listed.add((one.vmid, one.name))
            name = f"{one.vmid} {one.name}" + (f" on {one.node}" if one.node else "")
            yield Line(f"container {address} {one.vmid}", name, node=address, container=one)


def _hung(line: Line, *, is_last: bool) -> Line:
    branch = "└ " if is_last else "├ "
    return Line(line.row_id, line.name, branch, line.spec, line.node, line.container)

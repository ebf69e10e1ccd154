"""What a Proxmox node says of its containers, read without believing its shape."""

import json
from dataclasses import dataclass

from dflash_tui.text import visible

# Where `pct list` puts its columns; a name is the last of them and has no blanks.
_LOCK, _NAME = 22, 35


@dataclass(frozen=True, slots=True)
class Container:
    """`node` is None on the node that was asked. `status` is pct's word: "running" also for one that is frozen."""

    vmid: int
    name: str
    status: str
    lock: str | None = None
    node: str | None = None


def read_list(printed: bytes) -> list[Container]:
    """The table of `pct list`."""
    found = []
    for line in printed.decode("utf-8", "replace").splitlines()[1:]:
        words = line.split()
        if len(words) >= 3 and words[0].isdecimal():
            lock = line[_LOCK : _NAME - 1].strip()
            found.append(Container(int(words[0]), visible(words[-1]), visible(words[1]), visible(lock) or None))
    return found


def read_cluster(printed: bytes) -> list[Container]:
    """The JSON of `pvesh get /cluster/resources`. What is no container, or has no shape, is left out."""
    try:
        rows = json.loads(printed)
    except (ValueError, RecursionError):
        return []
    found = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("type") == "lxc" and isinstance(row.get("vmid"), int):
            name, status, node, lock = (row.get(key) for key in ("name", "status", "node", "lock"))
            found.append(
                Container(
                    row["vmid"], _text(name) or f"CT{row['vmid']}", _text(status) or "unknown", _text(lock), _text(node)
                )
            )
    return found


def _text(value: object) -> str | None:
    return visible(value[:100]) if isinstance(value, str) and value else None

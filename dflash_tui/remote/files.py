"""Files of a host that nobody writes any more, read whole."""

import json

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.text import visible

_MAX_BYTES = 1 << 27


async def read_file(agent: AgentClient, path: str, max_bytes: int = _MAX_BYTES) -> bytes:
    """All of a file that nobody writes. HostError if it is not there, or has more than `max_bytes`."""
    data = b""
    cursor: Json = {}
    while True:
        [(meta, piece)] = await agent.ask([{"op": "read", "path": path, "final": True, **cursor}])
        agent.accepted(meta)
        data += piece
        if meta.get("missing") or meta.get("reset") or len(data) > max_bytes:
            raise HostError(f"{visible(path)} on {agent.host.name} is not there any more, or too large")
        if not meta.get("more"):
            return data
        cursor = {key: meta.get(key) for key in ("offset", "inode", "anchor")}


async def read_json(agent: AgentClient, *files: str) -> list[Json]:
    """The objects in these files, which are whole or not there. HostError if one is not, or holds something else."""
    answers = await agent.ask([{"op": "read", "path": file, "final": True} for file in files])
    values = []
    for file, (meta, data) in zip(files, answers, strict=True):
        agent.accepted(meta)
        try:
            values.append(dict(json.loads(data)))
        except (ValueError, TypeError, RecursionError) as e:
            raise HostError(
                f"{file} on {agent.host.name} is missing or damaged: its run cannot be resumed or cloned"
            ) from e
    return values

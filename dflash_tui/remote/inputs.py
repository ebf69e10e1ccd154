"""What a training's config names on the machine that trains: the target, the rows, drafters, features.

Owns which keys those are and what must lie there. Whether it fits is the trainer's business.
"""

from collections.abc import Iterator
from typing import Any

from dflash_tui.errors import UsageError
from dflash_tui.remote.client import AgentClient
from dflash_tui.text import visible

# A key, and the path that it names.
Named = tuple[str, str]


def inputs(config: dict[str, Any]) -> list[Named]:
    """The keys of a nested config that name something, each with the path that must be there."""
    return [(key, str(path)) for key, path in _named(config) if path]


def _named(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    target, rows = config.get("target"), config.get("data", {}).get("path")
    if target not in (None, "tiny"):
        yield "target", f"{target}/config.json"
        # Without a path the rows lie beside the target.
        yield "data.path", rows or f"{target}/prompts.jsonl"
    else:
        yield "data.path", rows
    yield "init_from", config.get("init_from")
    yield "features.path", config.get("features", {}).get("path")
    for folder in config.get("checkpoints") or ():
        yield "checkpoints", folder


async def check_inputs(agent: AgentClient, config: dict[str, Any]) -> None:
    """UsageError names all that is not there, with the settings that say where it is."""
    wanted = inputs(config)
    if not wanted:
        return
    found = await agent.do("find-paths", paths=[path for _, path in wanted])
    lacking = [(key, path) for key, path in wanted if path in found["missing"]]
    if lacking:
        what = " and ".join(f"no {visible(path)} ({key})" for key, path in lacking)
        settings = " ".join(dict.fromkeys(f"--set {key}=..." for key, _ in lacking))
        raise UsageError(f"{agent.host.name} has {what}: say where it lies there, by its whole path: {settings}")

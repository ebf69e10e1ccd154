"""Puts code on a machine, under the hash of its content: what is there already is checked, not sent again."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dflash_tui import paths
from dflash_tui.remote.bundle import pack
from dflash_tui.remote.client import AgentClient

_UNPACK_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Code:
    """Code on a host. `commit` and `is_dirty` are those of the checkout it came from, None outside of one."""

    path: str
    sha256: str
    commit: str | None
    is_dirty: bool | None


async def deploy(agent: AgentClient, source: Path | None = None) -> Code:
    """Make the package `trainer`, by default the bundled one, importable from `Code.path` on the agent's host."""
    source = source or paths.bundled("trainer")
    bundle, (commit, is_dirty) = await asyncio.gather(
        asyncio.to_thread(pack, source, "trainer"), asyncio.to_thread(_checkout, source)
    )
    found = await agent.do("find-code", sha256=bundle.sha256, timeout_s=_UNPACK_TIMEOUT_S)
    if not found["there"]:
        await agent.host.put(bundle.archive, found["archive"])
        await agent.do("unpack", sha256=bundle.sha256, archive=found["archive"], timeout_s=_UNPACK_TIMEOUT_S)
    return Code(found["path"], bundle.sha256, commit, is_dirty)


def _checkout(source: Path) -> tuple[str | None, bool | None]:
    commit = _git(source, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(source, "status", "--porcelain", "--", ".")
    return commit.strip(), None if changes is None else bool(changes.strip())


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

"""A person's script: what runs it, and how it gets to a machine. Pushed as a file under the hash of its content."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from dflash_tui.errors import UsageError
from dflash_tui.remote.client import AgentClient
from dflash_tui.text import visible

MAX_BYTES = 64 << 20
_ELF = b"\x7fELF"
_BY_ENDING = {".sh": "/bin/sh", ".bash": "/bin/bash"}


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def argv(self, path: str, args: Sequence[str], python: str) -> list[str]:
        """The words that run it from `path`: what its first line asks for, else what its name says.

        UsageError if neither says anything. `python` is the host's, for a .py without a first line of its own.
        """
        first = self.content.partition(b"\n")[0]
        if first.startswith(b"#!") and (words := _words(first)):
            return [*words, path, *args]
        ending = PurePath(self.name).suffix
        if ending == ".py":
            return [python, path, *args]
        if ending in _BY_ENDING:
            return [_BY_ENDING[ending], path, *args]
        if self.content.startswith(_ELF):
            return [path, *args]
        raise UsageError(
            f"{visible(self.name)}: what runs it? Begin it with a line like #!/usr/bin/env bash, or name it .py or .sh"
        )


def read_script(file: Path) -> Script:
    """UsageError if there is none that can be sent."""
    try:
        with file.open("rb") as f:
            content = f.read(MAX_BYTES + 1)
    except OSError as e:
        raise UsageError(f"{visible(str(file))}: cannot be read: {e.strerror}") from e
    return checked(Script(file.name, content), str(file))


def checked(script: Script, where: str) -> Script:
    """`script`, unless it is none that can be sent: then UsageError."""
    if not script.content:
        raise UsageError(f"{visible(where)}: is empty: there is nothing to run")
    if len(script.content) > MAX_BYTES:
        raise UsageError(
            f"{visible(where)}: is larger than {MAX_BYTES >> 20} MiB, which no script is: copy it yourself"
        )
    script.argv("", (), "")
    return script


async def push(agent: AgentClient, script: Script) -> str:
    """Where the script lies on the agent's host. What is there already is checked, not sent again."""
    found = await agent.do("find-script", sha256=script.sha256, name=script.name)
    path = str(found["path"])
    if not found["there"]:
        mode = 0o700 if script.content.startswith(_ELF) else 0o600
        await agent.host.put(script.content, path, mode)
    return path


def _words(first: bytes) -> list[str]:
    """As the kernel reads a first line: a program, and all the rest as one argument."""
    program, _, rest = os.fsdecode(first[2:]).strip().replace("\t", " ").partition(" ")
    return [program, rest.strip()] if rest.strip() else [program] if program else []

"""The terminal given to another program for a while, and taken back. The session goes on meanwhile: it collects."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

from dflash_tui.ui.screen import tell

# What ssh ends with when it did not get in; any other code is the far shell's own.
_SSH_FAILED = 255


async def step_out(app: App[Any], words: Sequence[str], where: str) -> None:
    """Run a program in the terminal; what it ended with is told if that may be news."""
    try:
        # Nothing of ours is drawn meanwhile.
        with app.batch_update(), app.suspend():
            code = await _run(words, where)
    except SuspendNotSupported:
        tell(app, "this terminal cannot be given away for a shell", "error")
    except OSError as e:
        tell(app, f"{words[0]}: {e.strerror}: install it on this machine", "error")
    else:
        if code == _SSH_FAILED:
            tell(app, f"no shell on {where}: {words[0]} ended with exit code {code}", "warning")


async def _run(words: Sequence[str], where: str) -> int:
    # A Ctrl-C before the far side has the terminal is meant for that program. A handler does not outlive exec, as
    # ignoring would.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = await asyncio.create_subprocess_exec(*words)
        code = await process.wait()
        if code == _SSH_FAILED:
            print(f"{where}: {words[0]} ended with exit code {code}. Enter goes back to dflash-tui.", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        return code
    finally:
        signal.signal(signal.SIGINT, before)

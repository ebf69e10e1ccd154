"""Copying out of the session: through tmux, by the terminal (OSC 52), else into a file. The toast says which.

Whether a terminal obeys OSC 52 cannot be asked; those known not to are named here. A tmux with its own defaults drops
it, but takes a copy on the command line and passes it on.
"""

import asyncio
import os

from textual.widget import Widget

from dflash_tui import paths
from dflash_tui.ui.screen import tell

# xterm and tmux cut an OSC at 100,000 bytes; base64 makes 4 of 3.
OSC_BYTES = 74_000
_TMUX_S = 2.0


def copy(widget: Widget, text: str, what: str) -> None:
    """Put `text` where it can be pasted from, and say so."""
    if os.environ.get("TMUX"):
        widget.app.run_worker(_copy_by_tmux(widget, text, what), group="copy", exit_on_error=False)
    else:
        _copy(widget, text, what)


def _copy(widget: Widget, text: str, what: str) -> None:
    if can_osc52(text):
        widget.app.copy_to_clipboard(text)
        if not _is_multiplexed():
            tell(widget, f"copied {what}")
            return
    file = paths.private_dir(paths.data_dir()) / "copied.txt"
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as e:
        tell(widget, f"{file}: {e.strerror}; nothing was copied", "error")
        return
    if can_osc52(text):
        tell(widget, f"copied {what}, also into {file}: a tmux or screen on the way may keep it from your terminal")
    else:
        tell(widget, f"wrote {what} to {file}: this terminal takes no copies of that")


async def _copy_by_tmux(widget: Widget, text: str, what: str) -> None:
    # -w sends it on to the terminal's clipboard.
    words = ("tmux", "load-buffer", "-w", "-")
    pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        async with asyncio.timeout(_TMUX_S):
            tmux = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=none, stderr=none)
            await tmux.communicate(text.encode())
    except (OSError, TimeoutError):
        _copy(widget, text, what)
        return
    if tmux.returncode:
        _copy(widget, text, what)
    else:
        if can_osc52(text):
            # For a paste within the session.
            widget.app.copy_to_clipboard(text)
        tell(widget, f"copied {what}; in tmux, prefix ] pastes it")


def can_osc52(text: str) -> bool:
    """Whether the terminal may be trusted with a copy of `text`."""
    terminal = os.environ.get("TERM", "")
    is_deaf = terminal in ("", "linux", "dumb") or os.environ.get("TERM_PROGRAM") == "Apple_Terminal"
    return not is_deaf and len(text.encode()) <= OSC_BYTES


def _is_multiplexed() -> bool:
    """Whether the terminal is a tmux or a screen, on whichever machine."""
    return os.environ.get("TERM", "").startswith(("tmux", "screen"))

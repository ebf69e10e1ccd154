"""Copying out of the session: by the terminal (OSC 52) where it can, else into a file. The toast says which.

Whether a terminal obeys OSC 52 cannot be asked; those known not to are named here.
"""

import os

from textual.widget import Widget

from dflash_tui import paths
from dflash_tui.ui.screen import tell

# xterm and tmux cut an OSC at 100,000 bytes; base64 makes 4 of 3.
OSC_BYTES = 74_000


def copy(widget: Widget, text: str, what: str) -> None:
    """Put `text` where it can be pasted from, and say so."""
    if can_osc52(text):
        widget.app.copy_to_clipboard(text)
        tell(widget, f"copied {what}")
        return
    file = paths.private_dir(paths.data_dir()) / "copied.txt"
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as e:
        tell(widget, f"{file}: {e.strerror}; nothing was copied", "error")
    else:
        tell(widget, f"wrote {what} to {file}: this terminal takes no copies")


def can_osc52(text: str) -> bool:
    """Whether the terminal may be trusted with a copy of `text`."""
    terminal = os.environ.get("TERM", "")
    is_deaf = terminal in ("", "linux", "dumb") or os.environ.get("TERM_PROGRAM") == "Apple_Terminal"
    return not is_deaf and len(text.encode()) <= OSC_BYTES

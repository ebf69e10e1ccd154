"""The interactive session, from a terminal. What it shows stands in `ui`."""

from dflash_tui.commands.talk import has_terminal, say
from dflash_tui.errors import UsageError


def session(mouse: bool = True) -> None:
    """Returns when a person has left it."""
    if not has_terminal():
        raise UsageError("the session needs a terminal; for scripts there are `runs`, `report` and `query`: --help")
    from dflash_tui.ui.app import run_app

    if words := run_app(mouse=mouse):
        say(words)

"""The command line: which commands there are, and how each ends. stdout is data, stderr is talk.

A command stands in `commands/`; its body imports what it needs, so that `--help` and a `query` that the owner answers
start fast. Every error a person can meet ends here, once, as one line and an exit code.
"""

import os
import re
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from dflash_tui import __version__
from dflash_tui.commands import act, ask
from dflash_tui.commands.talk import has_terminal, say
from dflash_tui.errors import DflashError, ExitCode, QueryError, UsageError
from dflash_tui.text import visible

app = typer.Typer(
    name="dflash-tui",
    help="Train DFlash drafters on your own machines: launch, follow, stop, ask. Without a command: the session.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for command in (
    act.demo, act.launch, act.stop, act.resume, ask.runs, ask.status, ask.logs, ask.ingest, ask.report, ask.query,
    ask.panels, act.watch,
):  # fmt: skip
    app.command()(command)


def main() -> None:
    """The console script: every error a person can meet ends here, as one line and an exit code."""
    _ready_streams()
    try:
        _check_words(sys.argv[1:])
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except DflashError as e:
        _tell(e)
        code = e.exit_code
    except typer.TyperException as e:
        say(f"dflash-tui: {e.format_message()}")
        code = ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader has left (`| head`); inside a command typer makes a SystemExit of it. Nobody is to be told, and the
        # interpreter must not complain when it flushes at its end.
        sys.stdout = None
        code = ExitCode.OK
    except OSError as e:
        # A full disk, a folder that is not ours: the machine's own words name the file and the reason.
        say(f"dflash-tui: {e.filename or 'this machine'}: {e.strerror or e}")
        code = ExitCode.FAILED
    sys.exit(int(code or 0))


def _ready_streams() -> None:
    """No stream is missing (`<&-`), and none has a character that it cannot write (LC_ALL=C)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It takes the free descriptor too, which else the database would get, and with it what is printed.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _check_words(words: list[str]) -> None:
    for word in words:
        if re.search(r"[\ud800-\udfff]", word):
            shown = os.fsencode(word).decode("utf-8", "backslashreplace")
            raise UsageError(f"{shown}: cannot be read as text here; give it as UTF-8, under a UTF-8 locale")


def _tell(error: DflashError) -> None:
    column = error.column if isinstance(error, QueryError) else None
    say(f"dflash-tui: {error}" + (f" (column {column})" if column else ""))
    if column and isinstance(error, QueryError) and error.statement and sys.stderr.isatty():
        start = visible(error.statement[: column - 1].rpartition("\n")[2])
        rest = visible(error.statement[column - 1 :].partition("\n")[0])
        say(f"{start}{rest}\n{' ' * len(start)}^")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dflash-tui {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def session(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    if context.invoked_subcommand is None:
        if not has_terminal():
            raise UsageError("the session needs a terminal; for scripts there are `runs`, `report` and `query`: --help")
        from dflash_tui.ui.app import run_app

        if words := run_app():
            say(words)

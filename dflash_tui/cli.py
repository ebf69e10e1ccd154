"""How every command ends: stdout is data, stderr is talk, an error is one line and an exit code.

Which commands there are stands in `commands/app.py`. `query` and the session go past it: typer takes longer to start
than the owner takes to answer.
"""

import os
import re
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

from dflash_tui.commands.talk import say
from dflash_tui.errors import DflashError, ExitCode, QueryError, UsageError
from dflash_tui.text import visible


def main() -> None:
    """The console script: every error a person can meet ends here, as one line and an exit code."""
    _ready_streams()
    try:
        _check_words(sys.argv[1:])
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except DflashError as e:
        _tell(e)
        code = e.exit_code
    except KeyboardInterrupt:
        _leave_at_once()
    except (BrokenPipeError, SystemExit):
        # The reader has left (`| head`); inside a command typer makes a SystemExit of it. Nobody is to be told, and the
        # interpreter must not complain when it flushes at its end.
        sys.stdout = None
        code = ExitCode.OK
    except OSError as e:
        # A full disk, a folder that is not ours: the machine's own words name the file and the reason.
        say(f"dflash-tui: {e.filename or 'this machine'}: {e.strerror or e}")
        code = ExitCode.FAILED
    # All is said and done: a Ctrl-C that meets the interpreter on its way out ends it, and leaves no traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(int(code))


def _leave_at_once() -> NoReturn:
    """Without the interpreter's own way out: a further Ctrl-C there leaves a traceback, and a thread that DuckDB still
    works in is an abort. What was begun has been taken back by now, or is when the store is opened next."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(ExitCode.INTERRUPTED)


def _run(words: list[str]) -> int:
    if words[:1] == ["query"]:
        from dflash_tui.commands.query import query

        return query(words[1:])
    # Without words too, a shell may be asking for completions.
    if not words and "_DFLASH_TUI_COMPLETE" not in os.environ:
        from dflash_tui.commands.session import session

        session()
        return ExitCode.OK
    import typer

    from dflash_tui.commands.app import app

    try:
        code = int(app(standalone_mode=False) or 0)
    except typer.TyperException as e:
        raise UsageError(e.format_message()) from e
    except typer.Abort as e:
        raise KeyboardInterrupt from e
    # What typer makes of a Ctrl-C. Of a script that ended so, elsewhere, it is right too.
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return code


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

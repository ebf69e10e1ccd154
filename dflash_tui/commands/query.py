"""`query`: a person's SQL, its answer in a format, on stdout or in a file.

Read with argparse, not typer: typer's start alone takes longer than an answer of the owner's. What the answer's format
does not need is not imported.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from dflash_tui.commands.examples import under
from dflash_tui.commands.talk import say, store_options
from dflash_tui.errors import QueryError, UsageError
from dflash_tui.output.formats import FORMATS, format_named, format_of, pieces_of
from dflash_tui.text import did_you_mean, numbered

if TYPE_CHECKING:
    from dflash_tui.output.delivery import Delivered
    from dflash_tui.output.sink import Sink
    from dflash_tui.store.answer import Answer

# What a terminal gets of a table unless --limit says more.
TERMINAL_ROWS = 100


def query(words: list[str]) -> int:
    """The whole command; its exit code."""
    asked = _parser().parse_args(words)
    if asked.help:
        print(_parser().format_help(), end="")
        return 0
    statement = _statement(asked)
    params = dict(map(_param, asked.settings))
    form = _format(asked)
    try:
        _answer(asked, statement, params, form)
    except QueryError as e:
        e.statement = statement
        raise
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message.removeprefix("argument "))

    def parse_args(self, words: list[str]) -> argparse.Namespace:  # type: ignore[override]
        asked, unknown = self.parse_known_args(words)
        options = [option for action in self._actions for option in action.option_strings]
        for word in unknown:
            if word.lstrip("-") in FORMATS:
                raise UsageError(f"unknown option {word}: use --format {word.lstrip('-')}")
            if word.startswith("-"):
                raise UsageError(f"unknown option {word}: {did_you_mean(word, options)}")
        if len(asked.sql) + len(unknown) > 1:
            raise UsageError(f"a query is one word, and here are {len(asked.sql) + len(unknown)}: put it in quotes")
        return asked


def _parser() -> _Parser:
    parser = _Parser(
        prog="dflash-tui query",
        usage="dflash-tui query SQL|- [-p NAME=VALUE]... [OPTIONS]\n       dflash-tui query --schema [OPTIONS]",
        description="Ask the data with SQL, also while sessions run.",
        epilog=under("query").removeprefix("\b\n"),
        add_help=False,
        allow_abbrev=False,
        # Without a width it loads shutil, and with it three compressors, to ask the terminal.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100),
    )
    add = parser.add_argument
    add("sql", metavar="SQL", nargs="*", help="One SELECT, or - to read it from stdin.")
    add(
        "-p",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="What $NAME stands for; JSON, else text.",
    )
    add("--format", metavar="F", help=f"{', '.join(FORMATS)}; default: as FILE ends, table on a terminal, else csv.")
    add("--output", metavar="FILE", type=Path, help="Write to FILE, which appears when it is whole.")
    add("--limit", metavar="N", type=int, help=f"Rows at most; a table on a terminal has {TERMINAL_ROWS} unless told.")
    add("--timeout", metavar="S", type=float, help="Seconds until the query is given up, its last row included.")
    add("--stats", action="store_true", help="Rows, bytes and milliseconds on stderr.")
    add("--schema", action="store_true", help="The tables, their columns, types, units and meanings.")
    add("--help", action="store_true", help="This.")
    return parser


def _statement(asked: argparse.Namespace) -> str:
    if asked.limit is not None and asked.limit < 0:
        raise UsageError(f"--limit {asked.limit}: must be 0 or more")
    if asked.timeout is not None and not (asked.timeout > 0 and math.isfinite(asked.timeout)):
        raise UsageError(f"--timeout {asked.timeout:g}: must be more than 0 seconds")
    if asked.schema and (asked.sql or asked.settings):
        raise UsageError("--schema takes no SQL: ask for one of them")
    if asked.schema:
        return ""
    if not asked.sql:
        raise UsageError('there is no query: dflash-tui query "select max(step) from steps"')
    return _read_statement() if asked.sql == ["-"] else str(asked.sql[0])


def _read_statement() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as e:
        raise QueryError(f"the query on stdin is not UTF-8 at byte {e.start + 1:,}: convert it first") from e


def _param(setting: str) -> tuple[str, Any]:
    import msgspec

    name, sign, text = setting.partition("=")
    if not name or not sign:
        raise UsageError(f"-p {setting}: is no name=value")
    try:
        return name, msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return name, text


def _format(asked: argparse.Namespace) -> str:
    if asked.format is not None:
        return format_named(asked.format)
    if asked.output is not None:
        return format_of(asked.output)
    return "table" if sys.stdout.isatty() else "csv"


def _answer(asked: argparse.Namespace, statement: str, params: dict[str, Any], form: str) -> None:
    is_terminal = asked.output is None and sys.stdout.isatty()
    limit = asked.limit
    if limit is None and is_terminal and form == "table" and not asked.schema:
        limit = TERMINAL_ROWS
    notices: list[str] = []
    started = perf_counter()
    if form == "parquet":
        out, by = _write_parquet(asked, statement, params, is_terminal)
    else:
        out, by = _write_text(asked, statement, params, form, limit, _width() if is_terminal else None, notices.append)
    ended = perf_counter()
    if out.is_cut:
        more = "--limit N shows N of them, --format csv all" if asked.limit is None else "a larger --limit shows them"
        notices.append(f"showing the first {numbered(limit or 0, 'row')}, and there are more: {more}")
    if asked.stats:
        first_at = out.first_at or ended
        times = f"first_row_ms={(first_at - started) * 1000:.1f} total_ms={(ended - started) * 1000:.1f}"
        notices.append(f"rows={out.num_rows} bytes={out.num_bytes} {times} answered_by={by}")
    for notice in notices:
        say(notice)


def _write_text(
    asked: argparse.Namespace,
    statement: str,
    params: dict[str, Any],
    form: str,
    limit: int | None,
    width: int | None,
    tell: Callable[[str], None],
) -> "tuple[Delivered, str]":
    from dflash_tui.output.delivery import deliver
    from dflash_tui.output.sink import file_sink, stdout

    pieces = pieces_of(form, width=width, tell=tell)
    sink_of: AbstractContextManager[Sink] = file_sink(asked.output) if asked.output else nullcontext(stdout())
    with sink_of as sink, _question(asked, statement, params) as (answer, by):
        return deliver(answer, pieces, limit, sink), by


@contextmanager
def _question(asked: argparse.Namespace, statement: str, params: dict[str, Any]) -> "Iterator[tuple[Answer, str]]":
    if asked.schema:
        from dflash_tui.store.meanings import answer_meanings

        yield answer_meanings(), "direct"
        return
    from dflash_tui.store.asking import answered

    with answered(statement, params, asked.timeout, say, store_options) as found:
        yield found


def _write_parquet(
    asked: argparse.Namespace, statement: str, params: dict[str, Any], is_terminal: bool
) -> "tuple[Delivered, str]":
    from dflash_tui.output.delivery import Delivered
    from dflash_tui.output.sink import file_sink, is_special, replacing, stdout
    from dflash_tui.store.parquet import write_parquet
    from dflash_tui.store.snapshots import private_folder

    if asked.schema:
        raise UsageError("--schema is text: use --format csv or json")
    if is_terminal:
        raise UsageError("parquet is no text: name a file with --output")

    def write(place: Path) -> "tuple[Delivered, str]":
        done = write_parquet(statement, params, asked.timeout, place, asked.limit, say, store_options())
        return Delivered(done.num_rows, done.is_cut, place.stat().st_size, None), done.by

    if asked.output and not is_special(asked.output):
        with replacing(asked.output) as (place, _):
            return write(place)
    # A pipe cannot be written in places.
    with private_folder() as folder:
        out = write(folder / "answer.parquet")
        with file_sink(asked.output) if asked.output else nullcontext(stdout()) as sink:
            sink.copy(folder / "answer.parquet")
        return out


def _width() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80

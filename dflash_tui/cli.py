"""The commands: what they are called, what they take, which exit code they end with.

Every body imports what it needs, so that `--help` and a `query` that the owner answers start fast; what a command
does stands in the modules below. stdout is data, stderr is talk: only this file writes to either.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dflash_tui import __version__
from dflash_tui.errors import DflashError, ExitCode, QueryError, UsageError

if TYPE_CHECKING:
    from dflash_tui.runs import Window

app = typer.Typer(
    name="dflash-tui",
    help="Train DFlash drafters on your own machines: launch, follow, stop, ask. Without a command: the session.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)

RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run id, a name, or a unique beginning of an id.")]
AsJson = Annotated[bool, typer.Option("--json", help="One strict JSON document instead of a table.")]


def say(words: str) -> None:
    """One line of talk."""
    from dflash_tui.text import visible

    print(visible(words, keep="\n"), file=sys.stderr)


def main() -> None:
    """The console script: every error a person can meet ends here, as one line and an exit code."""
    import click

    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except DflashError as e:
        _tell(e)
        code = e.exit_code
    except click.ClickException as e:
        say(f"dflash-tui: {e.format_message()}")
        code = ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has left (`| head`): close stdout for good, or the interpreter complains at its end.
        sys.stdout = None  # type: ignore[assignment]
        code = ExitCode.OK
    sys.exit(int(code or 0))


def _tell(error: DflashError) -> None:
    say(f"dflash-tui: {error}")
    if isinstance(error, QueryError) and error.column and sys.stderr.isatty():
        say(" " * (error.column - 1) + "^")


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
        if not sys.stdout.isatty():
            raise UsageError("the session needs a terminal; for scripts there are `runs`, `report` and `query`: --help")
        from dflash_tui.ui.app import run_app

        run_app()


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, or - to read it from stdin.")],
    format: Annotated[str | None, typer.Option(help="table, csv or json; default: table on a terminal, else csv.")] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Seconds until the query is given up.")] = None,
) -> None:
    """Ask the data with SQL, also while sessions run: dflash-tui query "select max(step) from steps"."""
    from dflash_tui.output import WRITERS
    from dflash_tui.store.access import reader
    from dflash_tui.text import did_you_mean

    form = format or ("table" if sys.stdout.isatty() else "csv")
    if form not in WRITERS:
        raise UsageError(f"--format {form}: {did_you_mean(form, WRITERS)}")
    statement = sys.stdin.read() if sql == "-" else sql
    with reader() as store, store.query(statement, timeout_s=timeout) as answer:
        notice = WRITERS[form](answer, sys.stdout)
    if notice:
        say(notice)


@app.command()
def runs(as_json: AsJson = False) -> None:
    """List the runs, the newest first."""
    from dataclasses import asdict

    from dflash_tui import output
    from dflash_tui.store.access import reader
    from dflash_tui.text import duration

    with reader() as store:
        found = store.runs()
    if as_json:
        output.dump_json([asdict(run) for run in found], sys.stdout)
        return
    columns = ["run", "name", "host", "state", "step", "of", "age", "no contact"]
    rows = [
        [r.run_id, r.name, r.host, f"{r.state} ({r.reason})" if r.reason else r.state, r.step, r.total_steps]
        + [duration(r.age_s), duration(r.no_contact_s)]
        for r in found
    ]
    print(output.draw_table(columns, rows) if rows else "no runs yet: start one with `dflash-tui demo` or `launch`")


@app.command()
def report(
    run: RunName,
    panel: Annotated[list[str] | None, typer.Option(metavar="P", help="Only this panel; may be repeated.")] = None,
    last: Annotated[int | None, typer.Option(metavar="N", help="The N of statistics over the last N rows.")] = None,
    from_step: Annotated[int | None, typer.Option("--from", metavar="A", help="First step of the window.")] = None,
    to_step: Annotated[int | None, typer.Option("--to", metavar="B", help="Last step of the window.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print every panel of a run: its figures, or why there are none."""
    from dflash_tui import output
    from dflash_tui.store.access import reader

    window = _window(last, from_step, to_step)
    with reader() as store:
        found, notice = store.find(run)
        laid = store.window(found.run_id, window)
        panels = store.report(found.run_id, panel, window, buckets=120)
    if notice:
        say(notice)
    if as_json:
        output.dump_json(output.report_tree(found.run_id, laid, panels), sys.stdout)
    else:
        output.write_report(f"{found.name} ({found.state})", laid, panels, sys.stdout)


def _window(last: int | None, first: int | None, to: int | None) -> "Window":
    from dflash_tui.runs import Window

    if last is not None and (first is not None or to is not None):
        raise UsageError("--last and --from/--to exclude each other: give one window")
    if last is not None:
        return Window.last_rows(last)
    if first is not None or to is not None:
        return Window.between(0 if first is None else first, 2**62 if to is None else to)
    return Window()


@app.command()
def panels() -> None:
    """List the panels: bundled ones, and those in the config folder's panels/."""
    from dflash_tui import output, paths
    from dflash_tui.store.panels import load_panels

    rows = [[p.name, p.title, p.chart, " ".join(p.help.split())] for p in load_panels()]
    print(output.draw_table(["panel", "title", "chart", "help"], rows))
    say(f"a new panel is one .sql file in {paths.config_dir() / 'panels'}")


@app.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs on this machine.")],
    run: Annotated[str | None, typer.Option(metavar="N", help="Run id and name; default: the file's stem.")] = None,
) -> None:
    """Take logs on this machine into the store; again, and only what is new is read."""
    from dflash_tui.runs import given_run_id
    from dflash_tui.store.access import writer

    if run and len(files) > 1:
        raise UsageError(f"--run {run} names one log, and there are {len(files)}: ingest them one by one")
    jobs = [(file, given_run_id(run or file.stem)) for file in files]
    with writer() as store:
        for file, run_id in jobs:
            _tell_ingested(file, store.ingest(run_id, file))


def _tell_ingested(file: Path, summary: Any) -> None:
    from dflash_tui.text import number

    for reject in summary.first_rejects:
        say(f"{file}:{reject.line_no}: {reject.reason}")
    if summary.rejects > len(summary.first_rejects):
        say(f"{file}: ... and {summary.rejects - len(summary.first_rejects)} more: select * from rejects")
    for warning in summary.warnings:
        say(f"{file}: {warning}")
    if summary.held_back_bytes:
        say(f"{file}: the last line has no end yet ({summary.held_back_bytes} bytes held back)")
    print(
        f"{summary.run_id}: {number(summary.rows)} rows, {number(summary.rejects)} rejected,"
        f" {number(summary.attempts)} attempts, last step {number(summary.last_step)}"
    )

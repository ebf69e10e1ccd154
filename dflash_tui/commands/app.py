"""Which commands there are. What each does stands beside this; its body imports what it needs."""

from typing import Annotated

import typer

from dflash_tui import __version__
from dflash_tui.commands import act, ask, attach, check, hosts, keep, script
from dflash_tui.commands.examples import under
from dflash_tui.commands.query import query as run_query
from dflash_tui.commands.session import session as run_session

app = typer.Typer(
    name="dflash-tui",
    help="Train DFlash drafters on your own machines: launch, follow, stop, ask. Without a command: the session.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# Under the name that typer makes of the function's.
for command in (
    act.demo, act.launch, script.launch_script, act.stop, act.resume, act.clone, act.forget, attach.attach, ask.runs,
    ask.status, ask.logs, ask.ingest, ask.report, ask.panels, check.check, check.checks, check.compare, act.watch,
    keep.doctor, keep.compact,
):  # fmt: skip
    app.command(epilog=under(command.__name__.replace("_", "-")))(command)


app.add_typer(hosts.app, name="hosts", epilog=under("hosts"))
# Whatever stands behind FILE is the script's.
app.command("exec", context_settings={"allow_interspersed_args": False}, epilog=under("exec"))(script.exec_script)


# Its options are those of commands/query.py, which `cli.main` calls itself: this is for `--help` and completion.
@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    epilog=under("query"),
)
def query(context: typer.Context) -> None:
    """Ask the data with SQL, also while sessions run: dflash-tui query "select max(step) from steps"."""
    run_query(context.args)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dflash-tui {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def session(
    context: typer.Context,
    mouse: Annotated[
        bool,
        typer.Option("--mouse/--no-mouse", help="Whether the session takes the mouse, or leaves it to the terminal."),
    ] = True,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    if context.invoked_subcommand is None:
        run_session(mouse)

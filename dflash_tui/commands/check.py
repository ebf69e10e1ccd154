"""Commands that judge: what the checks find of a run, which checks there are, and how two runs compare."""

import sys
from typing import Annotated

import typer

from dflash_tui.commands import completion
from dflash_tui.commands.talk import say, store_options
from dflash_tui.commands.words import AsJson, RunName
from dflash_tui.errors import ExitCode, UsageError


def check(
    run: RunName,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Hold it against this run too; default: [checks] baseline.",
            autocompletion=completion.runs,
        ),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Is this run well? A line for each finding, the worst first; exit 6 for a warning or worse."""
    from dflash_tui.output import findings as output
    from dflash_tui.output.report import dump_json
    from dflash_tui.store.access import reader

    with reader(say, store_options()) as store:
        found, notice = store.find(run)
        findings = store.check(found.run_id, baseline)
    if notice:
        say(notice)
    if as_json:
        dump_json(output.findings_tree(findings), sys.stdout)
    else:
        output.write_findings(findings, sys.stdout)
    return ExitCode.FINDINGS if any(one.severity != "info" for one in findings) else ExitCode.OK


def checks() -> None:
    """List the checks and their thresholds: bundled ones, and those in the config folder's checks/."""
    from dflash_tui import config, paths
    from dflash_tui.output.report import draw_table
    from dflash_tui.store.check_files import load_checks

    chosen = config.load().checks.thresholds
    rows = [
        [
            one.name,
            ", ".join(_threshold(name, value, chosen.get(one.name, {})) for name, value in one.thresholds.items()),
            " ".join(one.help.split()),
        ]
        for one in load_checks()
    ]
    print(draw_table(["check", "thresholds", "help"], rows))
    say(
        f"a new check is one .sql file in {paths.config_dir() / 'checks'}; [checks.NAME] in config.toml sets thresholds"
    )


def _threshold(name: str, value: float, chosen: dict[str, float]) -> str:
    return f"{name} = {chosen[name]:g} (default {value:g})" if name in chosen else f"{name} = {value:g}"


def compare(
    run: RunName,
    other: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Another run; not needed with --reference.", autocompletion=completion.runs),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="R", help="`story`, `paper`, or a .json file; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Two runs side by side: config differences, figures over the same steps; or held against a reference."""
    from dflash_tui import references
    from dflash_tui.comparison import compare as compared
    from dflash_tui.output import comparison as output
    from dflash_tui.output.report import dump_json
    from dflash_tui.store.access import reader

    if other is None and not reference:
        raise UsageError(f"compare {run} with what? name another run, or --reference {' or '.join(references.names())}")
    held = [references.load(name) for name in reference or ()]
    with reader(say, store_options()) as store:
        runs = []
        for name in (run, other):
            if name is not None:
                found, notice = store.find(name)
                runs.append(found)
                if notice:
                    say(notice)
        result = compared(store, runs[0], runs[1] if len(runs) > 1 else None)
    if as_json:
        dump_json(output.comparison_tree(result, held), sys.stdout)
    else:
        output.write_comparison(result, held, sys.stdout)

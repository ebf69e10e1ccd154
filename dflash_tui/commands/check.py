"""Commands that judge: what the checks find of a run, and which checks there are."""

import sys

from dflash_tui.commands.talk import say, store_options
from dflash_tui.commands.words import AsJson, RunName
from dflash_tui.errors import ExitCode


def check(run: RunName, as_json: AsJson = False) -> ExitCode:
    """Is this run well? A line for each finding, the worst first; exit 6 for a warning or worse."""
    from dflash_tui.output import findings as output
    from dflash_tui.output.report import dump_json
    from dflash_tui.store.access import reader

    with reader(say, store_options()) as store:
        found, notice = store.find(run)
        findings = store.check(found.run_id)
    if notice:
        say(notice)
    if as_json:
        dump_json(output.findings_tree(findings), sys.stdout)
    else:
        output.write_findings(findings, sys.stdout)
    return ExitCode.FINDINGS if any(one.severity != "info" for one in findings) else ExitCode.OK


def checks() -> None:
    """List the checks and their thresholds: bundled ones, and those in the config folder's checks/."""
    from dflash_tui import paths
    from dflash_tui.output.report import draw_table
    from dflash_tui.store.check_files import load_checks

    rows = [
        [
            one.name,
            ", ".join(f"{name} = {value:g}" for name, value in one.thresholds.items()),
            " ".join(one.help.split()),
        ]
        for one in load_checks()
    ]
    print(draw_table(["check", "thresholds", "help"], rows))
    say(
        f"a new check is one .sql file in {paths.config_dir() / 'checks'}; [checks.NAME] in config.toml sets thresholds"
    )

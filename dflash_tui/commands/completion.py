"""What a shell offers behind a command: runs, hosts, recipes, panels. Read from files: no database is opened.

A shell that completes is told of no error: what cannot be read is not offered.
"""

from collections.abc import Iterable

from dflash_tui.errors import DflashError


def runs(incomplete: str) -> list[str]:
    """Ids and names of the runs that have a mirror here."""
    from dflash_tui.store.mirror import Mirror, mirrored_runs

    found: list[str] = []
    for run_id in mirrored_runs():
        found.append(run_id)
        try:
            record = Mirror(run_id).read_record()
        except DflashError:
            continue
        found += [record.name] if record else []
    return _beginning(found, incomplete)


def hosts(incomplete: str) -> list[str]:
    from dflash_tui import config

    try:
        return _beginning(config.load().hosts, incomplete)
    except DflashError:
        return []


def recipes(incomplete: str) -> list[str]:
    """Those that are bundled: of files a shell knows more."""
    from dflash_tui.recipes import bundled_names

    return _beginning(bundled_names(), incomplete)


def settings(incomplete: str) -> list[str]:
    from dflash_tui.recipes import schema

    return _beginning((f"{key}=" for key in schema()), incomplete)


def panels(incomplete: str) -> list[str]:
    from dflash_tui.store.panel_files import load_panels

    return _beginning((panel.name for panel in load_panels()), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    # What a shell would take for more than a word stays away from its line.
    plain = {name for name in names if name.isprintable() and not set(name) & set(" \"'\\$`;|&<>()!*?[]{}")}
    return sorted(name for name in plain if name.startswith(incomplete))

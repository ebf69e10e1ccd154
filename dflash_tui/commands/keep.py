"""Commands that keep the store well: doctor and compact."""

from typing import Annotated

import typer

from dflash_tui.commands.talk import say, store_options


def doctor(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the database anew from the mirrors; the old one stays until then.")
    ] = False,
) -> None:
    """Look whether the store is well: a line for each check, with what to do; exit code 1 if there is something."""
    if rebuild:
        _rebuild()
        return
    from dflash_tui.store.checkup import check_store
    from dflash_tui.text import visible

    is_well = True
    for finding in check_store():
        print(f"{'ok' if finding.is_well else 'DO':2}  {finding.what:9}  {visible(finding.sentence)}", flush=True)
        is_well = is_well and finding.is_well
    if not is_well:
        raise typer.Exit(1)


def _rebuild() -> None:
    from dflash_tui.bar import IngestBar
    from dflash_tui.store.compaction import rebuild
    from dflash_tui.text import numbered

    with IngestBar("rebuild") as bar:
        num_runs, num_rows = rebuild(store_options(), bar.show)
    print(f"made anew from the mirrors of {numbered(num_runs, 'run')}: {numbered(num_rows, 'row')}")


def compact() -> None:
    """Write the database anew without its holes, each run's rows together."""
    from dflash_tui.store.compaction import compact
    from dflash_tui.text import data_size

    before, after = map(data_size, compact(say, store_options()))
    print(f"{before} before, {after} after")

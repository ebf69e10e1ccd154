"""Which run a person means by a word on the command line. Pure: the runs are given."""

from dflash_tui.errors import UsageError
from dflash_tui.runs import Run
from dflash_tui.text import nearest, visible


def pick_run(runs: list[Run], name: str) -> tuple[Run, str | None]:
    """The run meant by `name`: its run_id, else the newest so named (and a notice if there are more), else a unique
    prefix of either. UsageError with the nearest name otherwise. `runs` are the newest first."""
    for run in runs:
        if run.run_id == name:
            return run, None
    named = [run for run in runs if run.name == name]
    if named:
        notice = None
        if len(named) > 1:
            notice = f"{len(named)} runs are called {name!r}: this is the newest, {named[0].run_id}"
        return named[0], notice
    begun = [run for run in runs if name and (run.run_id.startswith(name) or run.name.startswith(name))]
    if len(begun) == 1:
        return begun[0], None
    if begun:
        some = ", ".join(visible(run.run_id) for run in begun[:4])
        raise UsageError(f"{name!r} may be {len(begun)} runs ({some}{', ...' if len(begun) > 4 else ''})")
    near = nearest(name, [run.run_id for run in runs] + [run.name for run in runs])
    hint = f"did you mean {near!r}?" if near else "`dflash-tui runs` lists them"
    raise UsageError(f"there is no run {name!r}: {hint}")

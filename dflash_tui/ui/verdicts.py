"""How much the checks find of each run of the list, asked of the store a few runs at a time. Draws nothing.

Owns which runs are due: to check a million rows takes seconds, so one that goes on is looked at again after a while.
"""

import time
from collections.abc import Mapping, Sequence

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.store.base import Store
from dflash_tui.ui.run_columns import Verdict

# How long a run that goes on is not asked about again.
FRESH_S = 30.0
# A round ends after this much work: the ones that are left come in the next.
ROUND_S = 0.25


def due(runs: Sequence[Run], known: Mapping[str, Verdict], now: float) -> list[Run]:
    """The runs that were never looked at, or have gone on since, in their order."""
    return [run for run in runs if run.step is not None and _is_due(run, known.get(run.run_id), now)]


def _is_due(run: Run, verdict: Verdict | None, now: float) -> bool:
    if verdict is None or verdict.state != run.state:
        return True
    return now - verdict.at > FRESH_S and (verdict.counts is None or verdict.step != run.step)


def ask_verdicts(runs: Sequence[Run], now: float, store: Store) -> dict[str, Verdict]:
    """Of as many of these runs as a round has time for, at least one. Blocking.

    What cannot be checked has no count: its dashboard says why.
    """
    found: dict[str, Verdict] = {}
    deadline = time.monotonic() + ROUND_S
    for run in runs:
        try:
            severities = [one.severity for one in store.check(run.run_id)]
        except DflashError:
            counts = None
        else:
            counts = severities.count("critical"), severities.count("warning")
        found[run.run_id] = Verdict(run.state, run.step, now, counts)
        if time.monotonic() > deadline:
            break
    return found

"""What runs are called where several are in view: by name, and where two share one, by what tells them apart.

Also what another run like one of them may be called.
"""

import re
from collections.abc import Collection, Sequence
from itertools import count

from dflash_tui.runs import Run


def told_apart(runs: Sequence[Run]) -> list[str]:
    """The name of each; behind one that several have, the shortest end of the id that no other of them has."""
    shared: dict[str, list[str]] = {}
    for run in runs:
        shared.setdefault(run.name, []).append(run.run_id)
    return [run.name if len(shared[run.name]) == 1 else f"{run.name} {_end(run, shared[run.name])}" for run in runs]


def next_free(name: str, taken: Collection[str]) -> str:
    """A name for a run like this one: demo-2 of demo, demo-3 of demo-2."""
    stem = re.sub(r"-\d+$", "", name)
    stem = stem if stem in taken else name
    return next(free for number in count(2) if (free := f"{stem}-{number}") not in taken)


def _end(run: Run, run_ids: Sequence[str]) -> str:
    longest = max(map(len, run_ids))
    size = next((n for n in range(1, longest) if len({run_id[-n:] for run_id in run_ids}) == len(run_ids)), longest)
    return f"…{run.run_id[-size:]}" if size < len(run.run_id) else run.run_id

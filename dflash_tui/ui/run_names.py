"""What runs are called where several are in view: by name, and where two share one, by what tells them apart.

Also what another run like one of them may be called.
"""

import re
from collections.abc import Collection, Sequence
from itertools import count

from dflash_tui.runs import Run


def told_apart(runs: Sequence[Run]) -> list[str]:
    """The name of each; behind one that several have, the shortest end of the id that no other of them has."""
    return [f"{run.name} {end}" if end else run.name for run, end in zip(runs, endings(runs), strict=True)]


def endings(runs: Sequence[Run]) -> list[str]:
    """What `told_apart` puts behind the name of each: "" where no other run has it."""
    shared: dict[str, list[str]] = {}
    for run in runs:
        shared.setdefault(run.name, []).append(run.run_id)
    sizes = {name: _size(run_ids) for name, run_ids in shared.items()}
    return [_end(run.run_id, sizes[run.name]) for run in runs]


def next_free(name: str, taken: Collection[str]) -> str:
    """A name for a run like this one: demo-2 of demo, demo-3 of demo-2."""
    stem = re.sub(r"-\d+$", "", name)
    stem = stem if stem in taken else name
    return next(free for number in count(2) if (free := f"{stem}-{number}") not in taken)


def _size(run_ids: Sequence[str]) -> int:
    """How much of their ends tells these apart."""
    if len(run_ids) == 1:
        return 0
    longest = max(map(len, run_ids))
    return next((n for n in range(1, longest) if len({run_id[-n:] for run_id in run_ids}) == len(run_ids)), longest)


def _end(run_id: str, size: int) -> str:
    if not size:
        return ""
    return f"…{run_id[-size:]}" if size < len(run_id) else run_id

"""What two runs were made with, and where that differs: config, code, and what their trainers told when they began.

Owns which of it tells trainings apart. Knows nothing of how the runs do: that is `comparison`.
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from dflash_tui.errors import DflashError
from dflash_tui.recipes import flatten
from dflash_tui.runs import Run, RunRecord
from dflash_tui.store.base import Store
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.screens import ask_screen

# What of the differences tells which code ran.
_CODE = ("code_hash", "git_commit", "git_dirty")
# A value that the trainer settles when it starts.
UNSETTLED = "auto"
# What tells runs apart and is no difference between trainings.
_OF_THE_RUN = frozenset({"run_id", "run_dir", "schema", "config_hash", "resumed_from_step"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of the configs whose values differ; None where it is absent."""

    key: str
    a: Any
    b: Any


class Differences(NamedTuple):
    """`untold`: of the parts "code" and "config" those that neither run tells anything of."""

    found: list[Difference]
    untold: frozenset[str]


def find_differences(store: Store, a: Run, b: Run) -> Differences:
    left, right = _made(store, a.run_id), _made(store, b.run_id)
    keys = sorted(left.config.keys() | right.config.keys())
    found = [
        Difference(key, left.config.get(key), right.config.get(key))
        for key in keys
        if left.config.get(key) != right.config.get(key) and left.is_comparable(right, key)
    ]
    return Differences(found, frozenset({"code", "config"} - {part_of(key) for key in keys}))


def part_of(key: str) -> str:
    return "code" if key in _CODE else "config"


class _Made(NamedTuple):
    """What a run was made with; `is_told` by its trainer, which has settled what was left to it."""

    config: Mapping[str, Any]
    is_told: bool

    def is_comparable(self, other: "_Made", key: str) -> bool:
        """Not before both have begun, for what the trainer settles: it may be the same."""
        untold = [one.config for one in (self, other) if not one.is_told]
        return len(untold) != 1 or untold[0].get(key, UNSETTLED) != UNSETTLED


def _made(store: Store, run_id: str) -> _Made:
    """The config, and whatever else the newest `start` event of a run says; else what it was given."""
    record = store.detail(run_id).record
    rows = ask_screen(store, "start", {"run": run_id})
    extra, columns = (json.loads(text) if text else {} for text in (rows[0] if rows else (None, None)))
    told = extra if isinstance(extra, dict) else {}
    config = told.pop("config", None)
    is_told = isinstance(config, dict) or not record.config
    if not isinstance(config, dict):
        config = record.config or {}
    code = {key: value for key, value in _code(record).items() if value is not None}
    flat = _settings(columns) | flatten(told) | flatten(config) | code
    return _Made({key: value for key, value in flat.items() if key not in _OF_THE_RUN}, is_told)


def _settings(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers among them, whole ones as such: a column of a table knows no other than floats."""
    finite = {key: value for key, value in columns.items() if isinstance(value, float) and math.isfinite(value)}
    return {key: int(value) if value.is_integer() else value for key, value in finite.items()}


def _code(record: RunRecord) -> dict[str, Any]:
    commit, is_dirty = record.commit, record.is_dirty
    # Which code it was is good to know, and no reason to compare nothing.
    with suppress(DflashError):
        if known := Mirror(record.run_id).read_record():
            commit, is_dirty = known.commit, known.is_dirty
    return dict(zip(_CODE, (record.code_hash, commit, is_dirty), strict=True))

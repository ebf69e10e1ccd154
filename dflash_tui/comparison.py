"""Two runs side by side: what their configs differ in, and their figures over the steps that both have; references.

Owns which figures are compared. Asks any store, prints nothing.
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dflash_tui.errors import DflashError
from dflash_tui.recipes import flatten
from dflash_tui.references import Reference
from dflash_tui.runs import Run, RunRecord, Window
from dflash_tui.store.base import Store
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.screens import ask_screen

Key = tuple[str, str]
Figures = dict[Key, float]
WHOLE = Window()
# What `quality` calls the newest evaluation, whatever its name.
LAST = "last"
# The stat of a figure that is of training, where `quality` has the same of evaluations; before its slot, if it has one.
TRAINED = "train rows"
EVALUATED = "evaluation"
NOWHERE = "none in these steps"
# What `quality` and `trained` both know.
_OF_BOTH = (("accept_len", LAST), ("ddtree_streak8", LAST), ("position_acc", "1"))
# Of `dynamics`, what means something in any window; all of `vitals` does.
_DYNAMICS = ("avg_batch_size", "avg_seq_len", "tokens", "steps")
# What of the differences tells which code ran.
CODE = ("code_hash", "git_commit", "git_dirty")
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


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of both runs; None where a run has none."""

    metric: str
    stat: str
    a: float | None
    b: float | None

    @property
    def delta(self) -> float | None:
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def pct(self) -> float | None:
        """The change from a to b, in percent of a."""
        return None if self.delta is None or not self.a else 100 * (self.delta / abs(self.a))


@dataclass(frozen=True, slots=True)
class Held:
    """A figure of a reference, and those of the runs. `of` is what both are of; None where no run has any."""

    metric: str
    stat: str
    reference: float
    a: float | None
    b: float | None
    of: str | None = EVALUATED

    def share(self, value: float | None) -> float | None:
        """`value` in percent of the reference."""
        return None if value is None or not self.reference else 100 * value / self.reference


@dataclass(frozen=True, slots=True)
class Comparison:
    """`window` holds the first and last step that both runs have, None if there is none; `why` says then why not.

    Both sides of a figure are of the same: of evaluations, or of train rows. `notes` say why one is missing.
    """

    a: Run
    b: Run | None
    window: tuple[int, int] | None
    num_rows: tuple[int, int]
    config: list[Difference]
    metrics: list[Metric]
    figures: tuple[Figures, Figures] = field(repr=False)
    why: str | None = None
    evaluated: frozenset[Key] = frozenset()
    notes: tuple[str, ...] = ()

    def held_against(self, reference: Reference) -> list[Held]:
        """Every figure of `reference` with what the runs have of it."""
        return [self._held(*key, value) for key, value in reference.figures.items()]

    def _held(self, metric: str, stat: str, reference: float) -> Held:
        """Evaluations where all runs have one, else train rows; what only one run has is better than nothing."""
        a, b = self.figures
        sides = (a, b) if self.b else (a,)
        keys = [(metric, stat), (metric, _stat_of_training(stat))]
        for test in (all, any):
            for key in keys:
                if test(key in side for side in sides):
                    of = EVALUATED if key in self.evaluated else TRAINED
                    return Held(metric, stat, reference, a.get(key), b.get(key), of)
        return Held(metric, stat, reference, None, None, None)


def compare(store: Store, a: Run, b: Run | None, window: Window = WHOLE) -> Comparison:
    """`a` beside `b`, or alone. Every figure is of the steps that both have, as far as they lie in `window`."""
    runs = [run for run in (a, b) if run]
    spans = [store.window(run.run_id, Window()) for run in runs]
    first = max((span.first for span in spans if span.first is not None), default=None)
    last = min((span.last for span in spans if span.last is not None), default=None)
    if first is not None and last is not None:
        first, last = _cut(first, last, window)
    if first is None or last is None or last < first or any(span.first is None for span in spans):
        told = [
            f"{run.run_id} has {'no steps' if span.first is None else f'steps {span.first:,}..{span.last:,}'}"
            for run, span in zip(runs, spans, strict=True)
        ]
        within = "" if window == WHOLE else f" ({window})"
        why = f"no step in common{within}: {', '.join(told)}"
        return Comparison(a, b, None, (0, 0), _differences(store, a, b), [], ({}, {}), why)
    window = Window.between(first, last)
    qualities = [_quality(store, "quality", run.run_id, window) for run in runs]
    trained = _trained(store, runs, window, qualities)
    found = [
        _vitals(store, run.run_id, window) | quality | rest
        for run, quality, rest in zip(runs, qualities, trained, strict=True)
    ]
    num_rows = [store.window(run.run_id, window).n for run in runs]
    figures = (found[0], found[1] if b else {})
    keys = [key for key in figures[0] | figures[1] if not _is_twin(key, qualities)]
    metrics = [Metric(*key, figures[0].get(key), figures[1].get(key)) for key in keys]
    shared = (num_rows[0], num_rows[1] if b else 0)
    evaluated = frozenset(key for quality in qualities for key in quality)
    notes = _notes(runs, qualities, window, is_trained=any(trained))
    return Comparison(
        a, b, (first, last), shared, _differences(store, a, b), metrics, figures, evaluated=evaluated, notes=notes
    )


def _cut(first: int, last: int, window: Window) -> tuple[int, int]:
    """Of the steps `first`..`last` those in `window`; its last N are here steps, as rows differ from run to run."""
    if window.kind == "last":
        return max(first, last - (window.n or 1) + 1), last
    if window.kind == "range":
        return max(first, window.first or 0), last if window.last is None else min(last, window.last)
    return first, last


def _vitals(store: Store, run_id: str, window: Window) -> Figures:
    found: Figures = {}
    for panel in store.report(run_id, ["vitals", "dynamics"], window, buckets=1):
        for metric, stat, value, *_ in panel.rows:
            if metric in _DYNAMICS or (panel.name == "vitals" and metric != "step"):
                _put(found, metric, stat or "", value)
    return found


def _quality(store: Store, screen: str, run_id: str, window: Window) -> Figures:
    found: Figures = {}
    params = {"run": run_id, "first": window.first, "last": window.last}
    for metric, stat, value in ask_screen(store, screen, params):
        _put(found, metric, stat, value)
    return found


def _trained(store: Store, runs: list[Run], window: Window, qualities: list[Figures]) -> list[Figures]:
    """Of each run what its train rows say where not all runs have an evaluation that does, by a stat of its own."""
    if all(key in quality for quality in qualities for key in _OF_BOTH):
        return [{} for _ in runs]
    return [
        {
            (metric, _stat_of_training(stat)): value
            for (metric, stat), value in _quality(store, "trained", run.run_id, window).items()
            if not all((metric, stat) in quality for quality in qualities)
        }
        for run in runs
    ]


def _stat_of_training(stat: str) -> str:
    return TRAINED if stat == LAST else f"{TRAINED} {stat}"


def _notes(runs: list[Run], qualities: list[Figures], window: Window, *, is_trained: bool) -> tuple[str, ...]:
    """Which runs lack figures of evaluations, and what stands beside them."""
    notes = []
    for run, quality in zip(runs, qualities, strict=True):
        others = {key for other in qualities for key in other if key[1] == LAST or key[1].isdecimal()}
        lacking = sorted({metric for metric, _ in others - quality.keys()})
        if not quality:
            notes.append(f"{run.name} has no evaluation in steps {window.first:,}..{window.last:,}")
        elif lacking:
            notes.append(f"{run.name} has no {', '.join(lacking)} in its newest evaluation there")
    if notes and is_trained:
        notes.append(f"{TRAINED}: of training, means over the newest 2,000, by slot of the newest")
    return tuple(notes)


def _is_twin(key: Key, qualities: list[Figures]) -> bool:
    """Whether it is the figure of an evaluation by its name, and in every run that of the newest one too."""
    metric, stat = key
    named = any(key in found for found in qualities)
    return named and stat != LAST and all(found.get(key) == found.get((metric, LAST)) for found in qualities)


def _put(found: Figures, metric: str, stat: str, value: Any) -> None:
    if isinstance(value, (int, float)) and math.isfinite(value):
        found[metric, stat] = value


def _differences(store: Store, a: Run, b: Run | None) -> list[Difference]:
    if b is None:
        return []
    left, right = _made(store, a.run_id), _made(store, b.run_id)
    return [
        Difference(key, left.config.get(key), right.config.get(key))
        for key in sorted(left.config.keys() | right.config.keys())
        if left.config.get(key) != right.config.get(key) and left.is_comparable(right, key)
    ]


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
    told = json.loads(rows[0][0]) if rows and rows[0][0] else {}
    config = told.pop("config", None) if isinstance(told, dict) else None
    is_told = isinstance(config, dict) or not record.config
    if not isinstance(config, dict):
        config = record.config or {}
    rest = told if isinstance(told, dict) else {}
    code = _code(record)
    flat = flatten(rest) | flatten(config) | {key: value for key, value in code.items() if value is not None}
    return _Made({key: value for key, value in flat.items() if key not in _OF_THE_RUN}, is_told)


def _code(record: RunRecord) -> dict[str, Any]:
    commit, is_dirty = record.commit, record.is_dirty
    # Which code it was is good to know, and no reason to compare nothing.
    with suppress(DflashError):
        if known := Mirror(record.run_id).read_record():
            commit, is_dirty = known.commit, known.is_dirty
    return dict(zip(CODE, (record.code_hash, commit, is_dirty), strict=True))

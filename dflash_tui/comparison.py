"""Two runs side by side: what their configs differ in, and their figures over the steps that both have; references.

Owns which figures are compared. Asks any store, prints nothing.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dflash_tui.differences import Difference, find_differences
from dflash_tui.references import Reference
from dflash_tui.runs import Run, Window
from dflash_tui.store.base import ResolvedWindow, Store
from dflash_tui.store.screens import ask_screen

Key = tuple[str, str]
Figures = dict[Key, float]
Limits = tuple[int | None, int | None]
WHOLE = Window()
# The stat of a figure of the newest evaluation, where that is of one set in all runs; of the newest without a name.
LAST = "last"
UNNAMED = "unnamed"
# The stat of a figure that is of training, where there is the same of evaluations; before its slot, if it has one.
TRAINED = "train rows"
EVALUATED = "evaluation"
NOWHERE = "none to compare"
# What evaluations and train rows both know.
_POSITIONS = "position_acc"
_OF_BOTH = (("accept_len", LAST), ("ddtree_streak8", LAST), (_POSITIONS, "1"))
# Of `dynamics`, what means something in any window; all of `vitals` does.
_DYNAMICS = ("avg_batch_size", "avg_seq_len", "tokens", "steps")
# Stats that are no evaluation's name: one that is called so stands in quotes.
_TAKEN = frozenset({"", LAST, UNNAMED, TRAINED, "short", "mid", "long"})


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

    Both sides of a figure are of the same: of evaluations of one set, or of train rows. `notes` say why one is missing.
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
    untold: frozenset[str] = frozenset()
    """"code", "config": where nothing differs because neither run tells it."""

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
    """`a` beside `b`, or alone. Every figure is of the steps that both have, as far as they lie in `window`; of a run
    alone every evaluation counts, unless a window is asked for."""
    runs = [run for run in (a, b) if run]
    config, untold = find_differences(store, a, b) if b else ([], frozenset())
    spans = [store.window(run.run_id, WHOLE) for run in runs]
    steps = _common(spans, window)
    nums = [store.window(run.run_id, Window.between(*steps)).n if steps else 0 for run in runs]
    why = None if all(nums) else _why(runs, spans, nums, window, steps)
    if why and (b or window != WHOLE):
        return Comparison(a, b, None, (0, 0), config, [], ({}, {}), why, untold=untold)
    limits = _limits(store, runs, spans, window, steps)
    qualities, notes = _qualities(store, runs, limits)
    found, is_trained = list(qualities), False
    if steps:
        rows = Window.between(*steps)
        trained = _trained(store, runs, rows, qualities)
        is_trained = any(trained)
        found = [
            _vitals(store, run.run_id, rows) | quality | rest
            for run, quality, rest in zip(runs, qualities, trained, strict=True)
        ]
    notes += _lacking(runs, qualities, limits)
    if notes and is_trained:
        notes.append(f"{TRAINED}: of training, means over the newest 2,000, by slot of the newest")
    figures = (found[0], found[1] if b else {})
    keys = [key for key in figures[0] | figures[1] if not _is_twin(key, qualities)]
    metrics = [Metric(*key, figures[0].get(key), figures[1].get(key)) for key in keys]
    evaluated = frozenset(key for quality in qualities for key in quality)
    num_rows = (nums[0], nums[1] if b else 0)
    return Comparison(a, b, steps, num_rows, config, metrics, figures, why, evaluated, tuple(notes), untold)


def _common(spans: Sequence[ResolvedWindow], window: Window) -> tuple[int, int] | None:
    """First and last of the steps that all have in `window`; its last N are here steps: rows differ from run to run."""
    ends = [(span.first, span.last) for span in spans if span.first is not None and span.last is not None]
    if len(ends) < len(spans):
        return None
    first, last = max(first for first, _ in ends), min(last for _, last in ends)
    if window.kind == "last":
        first = max(first, last - (window.n or 1) + 1)
    elif window.kind == "range":
        first = max(first, window.first or 0)
        last = last if window.last is None else min(last, window.last)
    return (first, last) if first <= last else None


def _why(
    runs: Sequence[Run],
    spans: Sequence[ResolvedWindow],
    nums: Sequence[int],
    window: Window,
    steps: tuple[int, int] | None,
) -> str:
    """Why there is nothing of training to look at."""
    told = []
    for run, span, num in zip(runs, spans, nums, strict=True):
        has = "no steps" if span.first is None else f"steps {span.first:,}..{span.last:,}"
        none = f" and none of {steps[0]:,}..{steps[1]:,}" if steps and not num else ""
        told.append(f"{run.run_id} has {has}{none}")
    if len(runs) == 1 and window == WHOLE:
        return told[0]
    within = "" if window == WHOLE else f" ({window})"
    return f"no step{' in common' if len(runs) > 1 else ''}{within}: {', '.join(told)}"


def _limits(
    store: Store, runs: Sequence[Run], spans: Sequence[ResolvedWindow], window: Window, steps: tuple[int, int] | None
) -> Limits:
    """Of which steps evaluations count: those compared, and what comes behind the last train row of a run."""
    if steps is None or (len(runs) == 1 and window == WHOLE):
        return None, None
    first, last = steps
    if window == WHOLE:
        ended = [run for run, span in zip(runs, spans, strict=True) if span.last == last]
        found = [step for run in ended for (step,) in ask_screen(store, "evaluated", {"run": run.run_id})]
        last = max([last, *(step for step in found if step is not None)])
    return first, last


def _vitals(store: Store, run_id: str, window: Window) -> Figures:
    found: Figures = {}
    for panel in store.report(run_id, ["vitals", "dynamics"], window, buckets=1):
        for metric, stat, value, *_ in panel.rows:
            if metric in _DYNAMICS or (panel.name == "vitals" and metric != "step"):
                _put(found, metric, stat or "", value)
    return found


class _Evaluated(NamedTuple):
    """A row of `quality`."""

    metric: str
    slot: int | None
    name: str | None
    is_newest: bool
    value: float


def _qualities(store: Store, runs: Sequence[Run], limits: Limits) -> tuple[list[Figures], list[str]]:
    """Of each run what its newest evaluations say; and why that of the newest one is left out: runs may have evaluated
    several sets of prompts, each in its order, and of two sets no figures stand beside each other."""
    first, last = limits
    told = [
        [_Evaluated(*row) for row in ask_screen(store, "quality", {"run": run.run_id, "first": first, "last": last})]
        for run in runs
    ]
    mixed = {of_slots: _mixed(runs, told, of_slots=of_slots) for of_slots in (False, True)}
    qualities = []
    for rows in told:
        found: Figures = {}
        for metric, slot, name, is_newest, value in rows:
            if is_newest and not mixed[slot is not None]:
                _put(found, metric, LAST if slot is None else str(slot), value)
            if slot is None:
                _put(found, metric, _stat_of(name), value)
        qualities.append(found)
    return qualities, list(dict.fromkeys(note for note in mixed.values() if note))


def _mixed(runs: Sequence[Run], told: Sequence[Sequence[_Evaluated]], *, of_slots: bool) -> str | None:
    """Which set the newest evaluation of each run is of, where that is not the same; or the newest with slots."""
    names = [{one.name for one in rows if one.is_newest and (one.slot is not None) == of_slots} for rows in told]
    if len(set().union(*names)) < 2:
        return None
    sets = ", ".join(f"{run.name} {_stat_of(name)}" for run, found in zip(runs, names, strict=True) for name in found)
    return f"the newest evaluations are of different sets ({sets}): only what is of one set stands side by side"


def _stat_of(name: str | None) -> str:
    """How the figures of an evaluation called `name` are called: by no word that means something else."""
    if name is None:
        return UNNAMED
    return json.dumps(name) if name in _TAKEN or name.startswith('"') else name


def _trained(store: Store, runs: Sequence[Run], window: Window, qualities: Sequence[Figures]) -> list[Figures]:
    """Of each run what its train rows say where not all runs have an evaluation that does, by a stat of its own."""
    if all(key in quality for quality in qualities for key in _OF_BOTH):
        return [{} for _ in runs]
    found: list[Figures] = [{} for _ in runs]
    for run, figures in zip(runs, found, strict=True):
        params = {"run": run.run_id, "first": window.first, "last": window.last}
        for metric, stat, value in ask_screen(store, "trained", params):
            if not all((metric, stat) in quality for quality in qualities):
                _put(figures, metric, _stat_of_training(stat), value)
    return found


def _stat_of_training(stat: str) -> str:
    return TRAINED if stat == LAST else f"{TRAINED} {stat}"


def _lacking(runs: Sequence[Run], qualities: Sequence[Figures], limits: Limits) -> list[str]:
    """Which runs lack figures of evaluations that another has."""
    first, last = limits
    there = "" if first is None else f" in steps {first:,}..{last:,}"
    notes = []
    for run, quality in zip(runs, qualities, strict=True):
        others = {key for other in qualities for key in other if key[1] == LAST or key[0] == _POSITIONS}
        lacking = sorted({metric for metric, _ in others - quality.keys()})
        if not quality:
            notes.append(f"{run.name} has no evaluation{there}")
        elif lacking:
            notes.append(f"{run.name} has no {', '.join(lacking)} in its newest evaluation there")
    return notes


def _is_twin(key: Key, qualities: Sequence[Figures]) -> bool:
    """Whether it is the figure of an evaluation by its name, and in every run that of the newest one too."""
    metric, stat = key
    named = any(key in found for found in qualities)
    return named and stat != LAST and all(found.get(key) == found.get((metric, LAST)) for found in qualities)


def _put(found: Figures, metric: str, stat: str, value: Any) -> None:
    if isinstance(value, (int, float)) and math.isfinite(value):
        found[metric, stat] = value

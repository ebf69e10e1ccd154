"""Checks run over a run's rows: which of them found something, the worst first.

A check's file (check_files.py) has one SELECT, a row a finding, none if there is nothing to tell. Its columns:

    severity    info, warning or critical
    sentence    one sentence with the numbers
    steps       the steps concerned, a list; may be left out
    "values"    the numbers by name, a struct; may be left out

It may name these parameters and no others:

    $run             the run_id
    $now             unix seconds by this machine's clock
    $recent          none of the newest 3,000 rows with a step has a lower one, or of the newest `rows` if that is a
                     threshold of the check and more: it keeps `order by ... limit` from sorting a million rows
    $baseline        the run_id of the run to hold this one against; null for none
    $length_edges    [1500, 3000], the limits of the length buckets (config.toml)
    $needs           what panels cannot do without: a list of {panel, keys, logged}
    and its own thresholds

A check whose keys nobody logged is silent: `unlogged` tells of them. One that cannot be read or run is a finding of its
own, a warning, for nobody knows then.
"""

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from dflash_tui import paths
from dflash_tui.store.base import Finding, Severity
from dflash_tui.store.cells import strict
from dflash_tui.store.check_files import Check, load_checks
from dflash_tui.store.engine import duckdb
from dflash_tui.store.panel_cache import Answers, Found
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.panel_report import View
from dflash_tui.store.panel_windows import NUM_RECENT, Rows, newest
from dflash_tui.store.selects import Selected, SelectError, Statement, place, select, statements
from dflash_tui.text import did_you_mean, visible

Thresholds = Mapping[str, Mapping[str, float]]

# More rows than any run has: a threshold may be infinite, and is then told by its check.
_MAX_RECENT = 1e12
_MAX_FINDINGS = 50
_MAX_STEPS = 1000


class Question(NamedTuple):
    """What is asked, but for the time."""

    run_id: str
    length_edges: tuple[float, float]
    thresholds: Thresholds
    baseline: str | None = None
    baseline_fault: str | None = None
    """Why the one that config.toml names is none."""


def run_checks(cursor: duckdb.DuckDBPyConnection, question: Question, answers: Answers | None = None) -> list[Finding]:
    """What all checks find of a run, the worst first; `answers` is what is kept from one time to the next.

    duckdb.InterruptException passes through.
    """
    answers = answers or Answers()
    num_forgets = answers.num_forgets
    view = View(cursor, question.run_id)
    try:
        found = [*_misnamed(question.thresholds), *_without_baseline(question)]
        params = _Parameters(view, question)
        for check in load_checks():
            key = (
                question.run_id,
                check.name,
                check.sql,
                str(question.thresholds.get(check.name)),
                question.length_edges,
            )
            kept = answers.get(Found, *key) if check.cache else None
            if kept and kept.state == view.state:
                found += kept.findings
                continue
            try:
                told = _findings(check, view, params)
                if check.cache:
                    answers.put(Found(view.state, told), num_forgets, *key)
                found += told
            except SelectError as e:
                found.append(_failed(check, str(e)))
                # A statement that fails takes its transaction along.
                view.end()
                view.begin()
    finally:
        view.end()
    severities = get_args(Severity)
    return sorted(found, key=lambda finding: -severities.index(finding.severity))


class _Parameters:
    """The values that checks may name; what takes a look at the run is asked once, and only if one names it."""

    def __init__(self, view: View, question: Question) -> None:
        self._view = view
        self._thresholds = question.thresholds
        self._known: dict[str, Any] = {
            "run": question.run_id,
            "now": time.time(),
            "baseline": question.baseline if question.baseline != question.run_id else None,
            "length_edges": list(question.length_edges),
        }
        self._recent: dict[int, int | None] = {}

    def of(self, check: Check, statement: Statement) -> dict[str, Any]:
        own = check.thresholds | self._set(check)
        known = self._known | own
        for name in statement.names - known.keys():
            if name == "recent":
                known[name] = self._recent_of(own.get("rows", 0))
            elif name == "needs":
                known[name] = self._known[name] = self._needs()
            else:
                hint = did_you_mean(f"${name}", [f"${one}" for one in (*own, *self._known, "recent", "needs")])
                raise SelectError(f"{place(check, statement.line)}: unknown parameter ${name}: {hint}")
        return known

    def _set(self, check: Check) -> dict[str, float]:
        chosen = self._thresholds.get(check.name, {})
        for name in chosen:
            if name not in check.thresholds:
                raise SelectError(
                    f"{paths.config_file()}: unknown key checks.{visible(check.name)}.{visible(name)}:"
                    f" {did_you_mean(name, check.thresholds)}"
                )
        return dict(chosen)

    def _recent_of(self, num_rows: float) -> int | None:
        n = math.ceil(num_rows) if NUM_RECENT < num_rows < _MAX_RECENT else NUM_RECENT
        if n not in self._recent:
            end = (self._view.state.generation, self._view.state.line_no)
            self._recent[n] = newest(self._view.cursor, self._known["run"], Rows(n, None, None), end).first
        return self._recent[n]

    def _needs(self) -> list[dict[str, Any]]:
        return [
            {
                "panel": panel.name,
                "keys": list(need.keys),
                "relation": need.relation,
                "logged": any(map(self._view.state.keys.__contains__, need.keys)),
            }
            for panel in load_panels()
            for need in panel.requires
            # What is sampled is no key of a log.
            if need.relation != "gpus"
        ]


def _misnamed(thresholds: Thresholds) -> list[Finding]:
    names = [check.name for check in load_checks()]
    return [
        Finding(name, name, "warning", f"{paths.config_file()}: unknown key checks.{visible(name)}: {hint}")
        for name in thresholds
        if name not in names and (hint := did_you_mean(name, names))
    ]


def _without_baseline(question: Question) -> list[Finding]:
    if question.baseline_fault is None:
        return []
    sentence = f"{paths.config_file()}: checks.baseline: {question.baseline_fault}"
    return [Finding("against_baseline", "baseline", "warning", sentence)]


def _findings(check: Check, view: View, params: _Parameters) -> list[Finding]:
    if check.broken:
        raise SelectError(check.broken)
    if not all(any(key in view.state.keys for key in need.keys) for need in check.requires):
        return []
    [statement] = statements(view.cursor, check)
    found = select(view.cursor, check, statement, params.of(check, statement))
    return [_finding(check, statement, found, row) for row in found.rows[:_MAX_FINDINGS]]


def _finding(check: Check, statement: Statement, found: Selected, row: tuple[Any, ...]) -> Finding:
    cells = dict(zip(found.columns, map(strict, row), strict=True))
    tree = {
        "check": check.name,
        "title": check.title,
        "severity": cells.get("severity"),
        "sentence": cells.get("sentence"),
        "steps": (cells.get("steps") or [])[:_MAX_STEPS],
        "values": cells.get("values") or {},
        "next": check.next,
    }
    try:
        return msgspec.convert(tree, Finding)
    except msgspec.ValidationError as e:
        raise SelectError(
            f"{place(check, statement.line)}: a finding is severity ({', '.join(get_args(Severity))}), sentence, steps"
            f" (a list of whole numbers) and values (a struct): {e}"
        ) from e


def _failed(check: Check, why: str) -> Finding:
    return Finding(check.name, check.title, "warning", why)

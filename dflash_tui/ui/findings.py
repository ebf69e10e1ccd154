"""What the checks found of a run, as the dashboard shows it: a panel's answer, marks on the charts, a badge.

Blocking where it says so; draws nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dflash_tui.charts import Mark
from dflash_tui.output.findings import SIGNS, UNCHECKED
from dflash_tui.store.base import Finding, PanelResult, Store
from dflash_tui.store.check_files import load_checks
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.sql_header import SqlFile

NAME = "findings"
# Of one finding, so that a chart stays a chart.
MAX_MARKS = 6
HELP = (
    "What the checks find of this run, the worst first, each with what to look at next. The steps concerned are marked"
    " on the charts of the figures that a check looks at.\n\nEach check is one SQL file: `dflash-tui checks` lists"
    " them, `[checks.NAME]` in config.toml sets thresholds, a new file in checks/ beside it is a new check."
)


class Found(NamedTuple):
    """The findings, and the marks that they make on each panel."""

    findings: Sequence[Finding]
    marks: Mapping[str, tuple[Mark, ...]]


def ask_findings(run_id: str, store: Store) -> Found:
    """Raises DflashError. Blocking: seconds on a run of a million rows."""
    findings = store.check(run_id)
    return Found(findings, marks_of(findings))


def marks_of(findings: Sequence[Finding]) -> dict[str, tuple[Mark, ...]]:
    """By panel: the steps of what was found in the figures that it draws. Blocking: the files are read."""
    keys = {check.name: _keys(check) for check in load_checks()}
    found = [(keys.get(one.check, frozenset()), _marks(one)) for one in findings if one.steps]
    return {
        panel.name: tuple(mark for its_keys, marks in found if its_keys & _keys(panel) for mark in marks)
        for panel in load_panels()
    }


def _keys(file: SqlFile) -> frozenset[str]:
    return frozenset(key for need in file.requires for key in need.keys)


def _marks(finding: Finding) -> list[Mark]:
    sign = SIGNS[finding.severity]
    is_bad = finding.severity == "critical"
    first, *others = finding.steps[:MAX_MARKS]
    return [Mark(first, f"{sign} {finding.title}", sign, is_bad), *(Mark(step, "", sign, is_bad) for step in others)]


def waits_for_steps(findings: Sequence[Finding]) -> bool:
    """Whether all that was found is that no step is there to be checked."""
    return any(one.check == UNCHECKED for one in findings)


def as_result(findings: Sequence[Finding] | None) -> PanelResult:
    """The panel's answer; None: nobody knows yet, and it has none."""
    if findings is None:
        return PanelResult(NAME, NAME, NAME, "empty", why="looking ...", help=HELP)
    if all(one.severity == "info" for one in findings):
        for one in findings:
            if one.check == UNCHECKED:
                return PanelResult(NAME, NAME, NAME, "empty", why=one.sentence, help=HELP)
    columns = ["severity", "check", "sentence", "next", "steps"]
    rows = [[one.severity, one.title, one.sentence, one.next, one.steps] for one in findings]
    return PanelResult(NAME, NAME, NAME, "rows", headline=badge(findings), columns=columns, rows=rows, help=HELP)


def badge(findings: Sequence[Finding]) -> str:
    """✖ 1 ▲ 2; nothing without a warning."""
    counts = {severity: sum(one.severity == severity for one in findings) for severity in ("critical", "warning")}
    return " ".join(f"{SIGNS[severity]} {count}" for severity, count in counts.items() if count)

"""A run's report as one HTML file: every panel and finding, charts as SVG, nothing to fetch and nothing that runs.

All text passes through `_words`; the page forbids itself scripts and requests.
"""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflash_tui import __version__
from dflash_tui.charts import Mark, Options, draw
from dflash_tui.output.svg import canvas_svg
from dflash_tui.output.values import blob, plain
from dflash_tui.text import number, numbered, visible

if TYPE_CHECKING:
    from dflash_tui.runs import Run
    from dflash_tui.store.base import Finding, PanelResult, ResolvedWindow

_CELLS = (140, 22)
_STAT_CELLS = (140, 5)
# Marks of a finding whose steps are many say no more than its sentence.
_MAX_MARKS = 3
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
"""


def report_page(
    run: "Run", window: "ResolvedWindow", panels: Sequence["PanelResult"], findings: Sequence["Finding"], when: str
) -> str:
    """The whole file. `when` is the time it was made at, as a person reads it."""
    span = "no rows" if window.first is None else f"steps {number(window.first)}..{number(window.last)}"
    state = f"{run.state} ({run.reason})" if run.reason else run.state
    told = [run.run_id, state, *([f"on {run.host}"] if run.host else []), numbered(window.n, "row"), span]
    marks = [
        Mark(step, one.check)
        for one in findings
        if one.severity != "info" and len(one.steps) <= _MAX_MARKS
        for step in one.steps
    ]
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    parts = [
        _HEAD,
        f"<title>{_words(run.name)}</title><style>{style}</style></head><body>",
        f'<header><h1>{_words(run.name)}</h1><p class="dim">{_words(" · ".join(told))}</p></header>',
        _findings(findings),
        *(_panel(panel, marks) for panel in panels),
        f"<footer>dflash-tui {__version__}, {_words(when)}</footer></body></html>\n",
    ]
    return "\n".join(parts)


def _words(text: str) -> str:
    """Text of any origin as text of the page: no markup, no control character, none that turns its direction."""
    return escape(visible(text))


def _findings(findings: Sequence["Finding"]) -> str:
    items = [
        f'<li class="{one.severity}" data-check="{_words(one.check)}"><b>{one.severity}</b> {_words(one.title)}:'
        f" {_words(one.sentence)}"
        + (f'<span class="next">next: {_words(one.next)}</span>' if one.next and one.severity != "info" else "")
        + "</li>"
        for one in findings
    ]
    body = f"<ul>{''.join(items)}</ul>" if items else '<p class="why">nothing to tell</p>'
    return f'<section id="findings"><h2>Findings</h2>{body}</section>'


def _panel(panel: "PanelResult", marks: Sequence[Mark]) -> str:
    head = f"<h2>{_words(panel.title)}</h2>"
    if panel.state == "rows":
        headline = f'<p class="headline">{_words(panel.headline)}</p>' if panel.headline else ""
        body = headline + (_table(panel) if panel.chart == "table" else _chart(panel, marks))
    else:
        body = f'<p class="why">{_words(panel.why or panel.state)}</p>'
    help_text = f"<details><summary>what this is</summary>{_words(panel.help)}</details>" if panel.help else ""
    return f'<section data-panel="{_words(panel.name)}" data-state="{panel.state}">{head}{body}{help_text}</section>'


def _chart(panel: "PanelResult", marks: Sequence[Mark]) -> str:
    width, height = _STAT_CELLS if panel.chart == "stat" else _CELLS
    options = Options(marks) if panel.axes.get("x") == "step" else Options()
    canvas = draw(
        panel.chart,
        panel.columns,
        panel.rows,
        panel.axes,
        width=width,
        height=height,
        scale=panel.scale,
        unit=panel.unit,
        options=options,
    )
    return canvas_svg(canvas, visible(panel.title))


def _table(panel: "PanelResult") -> str:
    numeric = [all(_is_number(row[at]) or row[at] is None for row in panel.rows) for at in range(len(panel.columns))]
    heads = "".join(
        f"<th{_aligned(is_num)}>{_words(name)}</th>" for name, is_num in zip(panel.columns, numeric, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{_aligned(is_num)}>{_cell(cell)}</td>" for cell, is_num in zip(row, numeric, strict=True))
        + "</tr>"
        for row in panel.rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _aligned(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if _is_number(value):
        return _words(number(value))
    if isinstance(value, bytes):
        return _words(blob(value))
    return _words(value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False))

"""Two runs side by side, as text and as the JSON shape that scripts build on."""

from collections.abc import Sequence
from typing import Any, TextIO

from dflash_tui.comparison import NOWHERE, Comparison, Held
from dflash_tui.output.report import draw_table
from dflash_tui.references import Reference
from dflash_tui.text import number, numbered, visible


def write_comparison(found: Comparison, references: Sequence[Reference], out: TextIO) -> None:
    names = [run.name for run in (found.a, found.b) if run]
    out.write(visible(" against ".join(names)))
    if found.window:
        *others, last = found.num_rows[: len(names)]
        counts = " and ".join([*(f"{n:,}" for n in others), numbered(last, "row")])
        out.write(f" · steps {found.window[0]:,}..{found.window[1]:,}, {counts}")
    out.write("\n" + (visible(found.why) + "\n" if found.why else ""))
    if found.b:
        rows = [[one.key, _cell(one.a), _cell(one.b)] for one in found.config]
        alike = "neither run tells its config" if "config" in found.untold else "the configs do not differ"
        out.write("\n" + (_table(["config", "a", "b"], rows) if rows else f"{alike}\n"))
        if "code" in found.untold:
            out.write("neither run tells its code\n")
    if found.b and found.metrics:
        figures = [[one.metric, one.stat, one.a, one.b, one.delta, one.pct] for one in found.metrics]
        out.write("\n" + _table(["metric", "stat", "a", "b", "delta", "%"], figures))
    for note in found.notes:
        out.write(visible(note) + "\n")
    for reference in references:
        out.write("\n" + visible(reference.title) + "\n")
        held = found.held_against(reference)
        if found.b:
            head = ["metric", "stat", "reference", "of", "a", "% of reference", "b", "% of reference"]
        else:
            head = ["metric", "stat", "reference", "of", found.a.name, "% of reference"]
        out.write(_table(head, [_held_row(one, is_pair=found.b is not None) for one in held]))
        if reference.source:
            out.write(visible(f"source: {reference.source}") + "\n")


def _held_row(one: Held, *, is_pair: bool) -> list[Any]:
    row = [one.metric, one.stat, one.reference, one.of or NOWHERE, one.a, one.share(one.a)]
    return [*row, one.b, one.share(one.b)] if is_pair else row


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    return draw_table(columns, rows) + "\n"


def _cell(value: Any) -> Any:
    return number(value) if isinstance(value, float) else value


def comparison_tree(found: Comparison, references: Sequence[Reference]) -> dict[str, Any]:
    """`references` are there only when some were asked for."""
    first, last = found.window or (None, None)
    window = {"kind": "range", "first": first, "last": last, "a_n": found.num_rows[0], "b_n": found.num_rows[1]}
    tree: dict[str, Any] = {
        "a": found.a.run_id,
        "b": found.b and found.b.run_id,
        "window": window if found.window else None,
        "config": [{"key": one.key, "a": one.a, "b": one.b} for one in found.config],
        "metrics": [
            {"metric": one.metric, "stat": one.stat, "a": one.a, "b": one.b, "delta": one.delta, "pct": one.pct}
            for one in found.metrics
        ],
        "notes": list(found.notes),
    }
    if references:
        tree["references"] = [
            {
                "name": reference.name,
                "title": reference.title,
                "source": reference.source,
                "metrics": [
                    {
                        "metric": one.metric,
                        "stat": one.stat,
                        "reference": one.reference,
                        "of": one.of,
                        "a": one.a,
                        "a_pct_of_reference": one.share(one.a),
                        "b": one.b,
                        "b_pct_of_reference": one.share(one.b),
                    }
                    for one in found.held_against(reference)
                ],
            }
            for reference in references
        ]
    return tree

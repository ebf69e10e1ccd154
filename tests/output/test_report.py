"""The report as text: headlines, tables, and of a chart that has no headline its last row."""

import io

from dflash_tui.output.report import write_report
from dflash_tui.store.base import PanelResult, ResolvedWindow


def test_a_chart_without_a_headline_shows_its_last_row() -> None:
    rows = [[10, 0.5], [20, 0.25]]
    panels = [
        PanelResult("a", "clipped", "line", "rows", columns=["step", "share"], rows=rows),
        PanelResult("b", "loss", "line", "rows", headline="p50 1.5", columns=["step", "p50"], rows=rows),
        PanelResult("c", "acceptance", "line", "empty", "nothing has been logged yet"),
    ]
    out = io.StringIO()
    write_report("run", ResolvedWindow("run", 2, 10, 20), panels, out)
    assert out.getvalue() == (
        "run · 2 rows, steps 10..20\n"
        "\nclipped · the last of 2 rows\n  step  share\n    20   0.25\n"
        "\nloss · p50 1.5\n"
        "\nacceptance · nothing has been logged yet\n"
    )

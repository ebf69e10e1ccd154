"""Pictures of the Query screen, kept as SVG: look at each one before it is accepted (`pytest --snapshot-update`)."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dflash_tui.errors import QueryError
from dflash_tui.store import panel_files
from dflash_tui.ui import catalog

from .cockpit import make_app, sees, types
from .scripted_seat import make_run

RUNS = [make_run("v5-hardCE-g7-splitfc"), make_run("v5-g10", step=3104, age_s=245.0)]
SQL = """-- How the loss falls, by a thousand steps.
select step // 1000 * 1000 as step, quantile_cont(loss, 0.1) as p10, median(loss) as p50,
  quantile_cont(loss, 0.9) as p90, max(grad_norm) as "max", any_value(note) as note
from steps
where run = $run and loss < 1e3 and note <> 'warm-up'
group by 1 order by 1"""
NOTES = ("clean", None, "", "[red]宽\x1b[31m", "two\nlines")
COLUMNS = ["step", "p10", "p50", "p90", "max", "note"]
TYPES = ["BIGINT", "DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE", "VARCHAR"]
ROWS = [
    (1000 * k, m - 0.2, m, m + 0.9, (math.nan if k == 3 else 41.5 if k == 11 else 0.4 / (k + 1)), NOTES[k % 5])
    for k in range(200)
    for m in [0.9 + 1.9 * math.exp(-k / 6)]
]


@pytest.fixture(autouse=True)
def panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two panels: the picture must not change with every new one."""
    two = [panel_files.parse(name, tmp_path, f"-- The {name}.\nselect 1") for name in ("loss", "lr")]
    monkeypatch.setattr(catalog, "load_panels", lambda: two)


def picture(answer: Any, *keys: str, until: str, typed: str = "", theme: str = "") -> Callable[[Pilot[None]], Any]:
    async def run(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        if theme:
            pilot.app.theme = theme
        pilot.app.seat.store.answer = answer  # type: ignore[attr-defined]
        await pilot.press("4")
        await sees(pilot, "$run = v5-hardCE-g7-splitfc")
        pilot.app.screen.query_one("#sql").write(SQL)  # type: ignore[attr-defined]
        await pilot.press("ctrl+r")
        await types(pilot, typed)
        await pilot.press(*keys)
        await sees(pilot, until)

    return run


def test_table_120x40(snap_compare: Any) -> None:
    run = picture((COLUMNS, TYPES, ROWS), "escape", "j", "j", "j", "l", "l", "l", "l", until="max = NaN")
    assert snap_compare(make_app(RUNS), terminal_size=(120, 40), run_before=run)


def test_error_80x24(snap_compare: Any) -> None:
    error = QueryError("there is no column 'note' here; did you mean 'noise_std'?", SQL.index("note)") + 1)
    run = picture(error, until="^^^^")
    assert snap_compare(make_app(RUNS), terminal_size=(80, 24), run_before=run)


def test_chart_120x40_light(snap_compare: Any) -> None:
    run = picture((COLUMNS, TYPES, ROWS), "f8", until="p50 over step", theme="dflash-light")
    assert snap_compare(make_app(RUNS), terminal_size=(120, 40), run_before=run)


def test_completion_120x40_without_colour(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    run = picture((COLUMNS, TYPES, ROWS), "down", typed=" desc, gr", until="grad_clipped")
    assert snap_compare(make_app(RUNS), terminal_size=(120, 40), run_before=run)

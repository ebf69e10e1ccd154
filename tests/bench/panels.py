"""All panels of a run, warm; and the windowed ones of ten million steps.

The bars are of a run that grows by 100 rows between two reports. One that stands still is answered from what is kept,
and the note says how long a report takes that keeps nothing.
"""

from collections.abc import Sequence
from pathlib import Path

from dflash_tui.store.panel_files import load_panels
from tests.bench import peers
from tests.bench.rows import MILLION, SHAPES, Row, ask, measured, worst
from tests.bench.stores import copy_of, log_of, store_of

_WINDOWS = ("last 10000", f"{5 * MILLION}..{5 * MILLION + 100_000}")


def measure(folder: Path) -> list[Row]:
    rows = [
        _row(folder, "panels_23k", 23_000, None, "run"),
        _row(folder, "panels_1m", MILLION, 150.0, "run"),
        _row(folder, "panels_1m: evaluated", MILLION, 150.0, "run", ("story", "evaluated")),
        _windowed(folder),
        _row(folder, "panels_10m: whole run", 10 * MILLION, None, "run"),
    ]
    try:
        found = ask(
            "polars_figures", folder, log_of(folder, MILLION, "story"), "warm", python=peers.environment() / "python"
        )
    except peers.NoPeerError as e:
        return [*rows, peers.missing("panels_1m: polars", e)]
    note = "ms, a frame that is in memory already: vitals and nine of the charts, no text, no notes, median of 6"
    return [*rows, measured("panels_1m: polars", found["warm_ms"], None, note)]


def _row(folder: Path, bar: str, steps: int, limit: float | None, window: str, shapes: Sequence[str] = SHAPES) -> Row:
    found = {shape: ask("panels", _copy(folder, steps, shape), window) for shape in shapes}
    story = found["story"]
    note = (
        f"ms, all panels, 100 new rows between two reports, median of 11 (story: {story['still']:.1f} without new rows,"
        f" {story['anew']:.0f} with nothing kept, {story['first']:.0f} the first of a process)"
    )
    return worst(bar, {shape: times["grown"] for shape, times in found.items()}, limit, note)


def _windowed(folder: Path) -> Row:
    """Those that look at `last N` alone, and all of them over A..B."""
    narrow = [panel.name for panel in load_panels() if panel.window is None]
    times, anew = {}, 0.0
    for shape in SHAPES:
        for window, names in zip(_WINDOWS, (narrow, []), strict=True):
            found = ask("panels", _copy(folder, 10 * MILLION, shape), window, *names)
            times[f"{shape}, {window}"] = found["grown"]
            anew = max(anew, found["anew"])
    note = (
        f"ms, 100 new rows between two reports, median of 11, at most {anew:.0f} with nothing kept; a store of 1M rows"
    )
    return worst("panels_10m", times, 250.0, f"{note} by ingest, ten times by SQL with shifted steps")


def _copy(folder: Path, steps: int, shape: str) -> Path:
    return copy_of(store_of(folder, steps, shape), "panels")

"""Pictures of the Compare screen, kept as SVG: look at each one before it is accepted."""

from typing import Any

import pytest
from textual.pilot import Pilot

from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult
from dflash_tui.ui.app import DflashApp

from .cockpit import make_app, sees
from .scripted_seat import make_more_panels, make_run

LARGE, SMALL = (120, 40), (80, 24)
CONFIG = {"lr": 6e-4, "loss": {"ce": 1.0}, "noise": {"on": "all", "std": 0.1}, "teacher": "final_hidden", "gamma": 10}


class Shorter:
    """The store's panels, each run's a little shorter and higher than the one before: seen apart, and by formula."""

    def __init__(self, app: DflashApp) -> None:
        self._report = app.seat.store.report
        self._names = [run.run_id for run in app.seat.store.known]

    def __call__(self, run_id: str, names: list[str] | None, window: Window, buckets: int) -> list[PanelResult]:
        at = self._names.index(run_id)
        results: list[PanelResult] = self._report(run_id, names, window, buckets)
        for result in results:
            if result.axes.get("x") == "step":
                rows = result.rows[: len(result.rows) - 12 * at]
                result.rows[:] = [[row[0], *(value * (1 + at / 4) for value in row[1:])] for row in rows]
        return results


def apart() -> DflashApp:
    names = ("v5-hardCE-g7-splitfc", "v4-kl07", "[red]宽\x1b[31m")
    runs = [make_run(f"run-{i}", name=name) for i, name in enumerate(names)]
    app = make_app(runs)
    store = app.seat.store
    store.panels = make_more_panels
    store.configs = {runs[0].run_id: CONFIG, runs[1].run_id: {**CONFIG, "teacher": "tokens", "gamma": 7}}
    store.report = Shorter(app)
    return app


async def compare(pilot: Pilot[None]) -> None:
    await sees(pilot, "0.913")
    await pilot.press("space", "j", "space", "j", "space", "6")
    await sees(pilot, "gamma", "loss  1 of 5")


async def hold(pilot: Pilot[None]) -> None:
    await compare(pilot)
    await pilot.press("R", "R", "j", "j", "j")
    await sees(pilot, "of reference")


@pytest.mark.parametrize("size", [LARGE, SMALL], ids="{0[0]}x{0[1]}".format)
def test_compare(snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(apart(), terminal_size=size, run_before=compare if size == LARGE else hold)


def test_compare_with_a_reference_light(snap_compare: Any) -> None:
    async def hold_in_the_light(pilot: Pilot[None]) -> None:
        await pilot.press("t", "j", "enter")
        await hold(pilot)

    assert snap_compare(apart(), terminal_size=LARGE, run_before=hold_in_the_light)


def test_compare_without_colour(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(apart(), terminal_size=LARGE, run_before=compare)

"""The Compare screen: three runs side by side, and held against a reference."""

from contextlib import AbstractContextManager, nullcontext

from textual.pilot import Pilot

from dflash_tui.runs import Window
from dflash_tui.store.base import PanelResult
from dflash_tui.ui.app import DflashApp

from ..cockpit import make_app, sees
from ..pictures import LARGE, LIGHT, NO_COLOUR, SMALL, Scene
from ..scripted_seat import make_more_panels, make_run

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


def apart() -> AbstractContextManager[DflashApp]:
    names = ("v5-hardCE-g7-splitfc", "v4-kl07", "[red]宽\x1b[31m")
    runs = [make_run(f"run-{i}", name=name) for i, name in enumerate(names)]
    app = make_app(runs)
    store = app.seat.store
    store.panels = make_more_panels
    store.configs = {runs[0].run_id: CONFIG, runs[1].run_id: {**CONFIG, "teacher": "tokens", "gamma": 7}}
    store.report = Shorter(app)
    return nullcontext(app)


async def compare(pilot: Pilot[None]) -> None:
    await sees(pilot, "0.913")
    await pilot.press("space", "j", "space", "j", "space", "6")
    await sees(pilot, "gamma", "loss  1 of 5")


async def hold(pilot: Pilot[None]) -> None:
    await compare(pilot)
    await pilot.press("R", "R", "j", "j", "j")
    await sees(pilot, "of reference")


SCENES = (
    Scene("compare", apart, compare),
    Scene("compare-reference", apart, hold, only=((LARGE, LIGHT), (SMALL, NO_COLOUR))),
)

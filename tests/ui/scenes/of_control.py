"""What starts and stops runs: the forms of a new run and of one like another, the stop dialog before and after."""

import time
from contextlib import AbstractContextManager, nullcontext

from textual.pilot import Pilot

from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.stop_screen import StopScreen

from ..cockpit import make_app, sees, types
from ..pictures import DARK, LIGHT, SMALL, Scene, press
from .of_runs import FLEET, fleet


def configured() -> AbstractContextManager[DflashApp]:
    app = make_app(FLEET)
    app.seat.store.configs = {FLEET[0].run_id: {"target": "tiny", "lr": 6e-4, "noise": {"std": 0.1}}}  # type: ignore[attr-defined]
    return nullcontext(app)


def saved(step: int) -> AbstractContextManager[DflashApp]:
    app = make_app(FLEET)
    app.seat.store.checkpoints = [(step, f"/c/{step}", 7e8, time.time() - 7900)]  # type: ignore[attr-defined]
    return nullcontext(app)


async def fill_in(pilot: Pilot[None]) -> None:
    await pilot.press("n", "tab", "tab", "tab")
    await types(pilot, "lr=0.001")
    await pilot.press("tab")
    await types(pilot, "0,1")
    await sees(pilot, "* lr = 0.001", "with: CUDA_VISIBLE_DEVICES")


async def change(pilot: Pilot[None]) -> None:
    await sees(pilot, "0.913")
    await pilot.press("c")
    await sees(pilot, "A run like", "✓ 12 ms")
    await types(pilot, "noise.std=0.05")
    await sees(pilot, "* noise.std = 0.05  (was 0.1)")


async def stop(pilot: Pilot[None]) -> None:
    await sees(pilot, "0.913")
    now = [1000.0]
    seat = pilot.app.seat  # type: ignore[attr-defined]
    seat.gate.clear()
    pilot.app.push_screen(StopScreen(seat, FLEET[0], lambda: now[0]))
    await sees(pilot, "2h 11m ago")
    await pilot.press("enter")
    now[0] += 42
    await sees(pilot, "killed in 1m 18s")


SCENES = (
    Scene("launch", fleet, fill_in),
    Scene("clone", configured, change),
    Scene("stop", lambda: saved(22_500), press("X", until="198 steps back")),
    Scene("stopping", lambda: saved(22_698), stop, only=((SMALL, DARK), (SMALL, LIGHT))),
)

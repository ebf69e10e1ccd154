"""Pictures of the screens, kept as SVG: look at each one before it is accepted (`pytest --snapshot-update`)."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dflash_tui import paths
from dflash_tui.ui.stop_screen import StopScreen

from .cockpit import make_app, sees, types
from .scripted_seat import make_run

FLEET = [
    make_run("v5-hardCE-g7-splitfc"),
    make_run("v5-g10", step=3104, age_s=245.0),
    make_run("v4-kl07", step=18_220, no_contact_s=41.0),
    make_run("v3", state="failed", reason="oom-gpu", code=137, step=9871, age_s=273_600.0, no_contact_s=None),
    make_run("demo", host="local", state="finished", reason="completed", step=600, total_steps=600, no_contact_s=None),
    make_run("golden", host=None, kind="ingested", state="absent", total_steps=None, age_s=None, no_contact_s=None),
    make_run("[red]宽\x1b[31m", state="stopped", reason="killed-after-grace", attempt=3, no_contact_s=None),
]
RECIPE_SCHEMA = """{"keys": {
  "target": {"type": "string", "required": true, "unit": "", "help": "The model to draft for."},
  "lr": {"type": "number", "default": 0.0006, "exclusive_min": 0, "max": 1, "unit": "", "help": "Peak learning rate."},
  "noise.std": {"type": "number", "default": 0.05, "min": 0, "unit": "", "help": "Noise at its strongest."},
  "total_steps": {"type": "integer", "nullable": true, "default": null, "min": 1, "unit": "steps", "help": "Steps."}
}}"""

Keys = Callable[[Pilot[None]], Awaitable[None]]


def press(*keys: str, until: str) -> Keys:
    async def run(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        await pilot.press(*keys)
        await sees(pilot, until)

    return run


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer with four keys and two recipes: the picture must not change with the real one's."""
    folder = tmp_path / "trainer"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipe_schema.json").write_text(RECIPE_SCHEMA)
    for name in ("paper", "tiny"):
        (folder / "recipes" / f"{name}.toml").write_text('target = "tiny"\ntotal_steps = 700\n')
    bundled = paths.bundled
    monkeypatch.setattr(paths, "bundled", lambda name: folder if name == "trainer" else bundled(name))


def test_runs_120x40(snap_compare: Any) -> None:
    keys = press("j", "j", "space", "k", "space", "G", "p", "s", "s", "s", "s", "g", "j", until="seen 2 s ago")
    assert snap_compare(make_app(FLEET), terminal_size=(120, 40), run_before=keys)


def test_runs_80x24_with_a_filter_that_is_wrong(snap_compare: Any) -> None:
    async def filter_wrongly(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        await pilot.press("j", "j", "space", "slash")
        await types(pilot, "v hots:gpu2")
        await sees(pilot, "did you mean 'host'?")

    assert snap_compare(make_app(FLEET), terminal_size=(80, 24), run_before=filter_wrongly)


def test_run_120x40(snap_compare: Any) -> None:
    assert snap_compare(make_app(FLEET), terminal_size=(120, 40), run_before=press("enter", until="no findings"))


def test_run_80x24(snap_compare: Any) -> None:
    assert snap_compare(make_app(FLEET), terminal_size=(80, 24), run_before=press("enter", "tab", until="no findings"))


def test_run_120x40_light(snap_compare: Any) -> None:
    keys = press("t", "j", "enter", "enter", until="no findings")
    assert snap_compare(make_app(FLEET), terminal_size=(120, 40), run_before=keys)


def test_run_120x40_without_colour(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(make_app(FLEET), terminal_size=(120, 40), run_before=press("enter", until="no findings"))


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_run_looked_into(snap_compare: Any, size: tuple[int, int]) -> None:
    """Zoomed, a cursor in all charts, the loss smoothed."""

    async def look(pilot: Pilot[None]) -> None:
        await press("enter", until="no findings")(pilot)
        await sees(pilot, "20k")
        await pilot.press("left", *["shift+left"] * 3, "plus", "m")
        await sees(pilot, "zoom 5,674..17,023", "smoothed 0.6")

    assert snap_compare(make_app(FLEET), terminal_size=size, run_before=look)


def test_launch_form_120x40(snap_compare: Any, trainer: None) -> None:
    async def fill_in(pilot: Pilot[None]) -> None:
        await pilot.press("n", "tab", "tab", "tab")
        await types(pilot, "lr=0.001")
        await sees(pilot, "* lr = 0.001", "✓ 12 ms")

    assert snap_compare(make_app(FLEET), terminal_size=(120, 40), run_before=fill_in)


def test_clone_form_80x24(snap_compare: Any, trainer: None) -> None:
    app = make_app(FLEET)
    app.seat.store.configs = {FLEET[0].run_id: {"target": "tiny", "lr": 6e-4, "noise": {"std": 0.1}}}

    async def change(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        await pilot.press("c")
        await sees(pilot, "A run like", "✓ 12 ms")
        await types(pilot, "noise.std=0.05")
        await sees(pilot, "* noise.std = 0.05  (was 0.1)")

    assert snap_compare(app, terminal_size=(80, 24), run_before=change)


def test_stop_dialog_80x24(snap_compare: Any) -> None:
    app = make_app(FLEET)
    app.seat.store.checkpoints = [(22_500, "/c/22500", 7e8, time.time() - 7900)]
    assert snap_compare(app, terminal_size=(80, 24), run_before=press("X", until="198 steps back"))


def test_stopping_80x24(snap_compare: Any) -> None:
    app = make_app(FLEET)
    app.seat.store.checkpoints = [(22_698, "/c/22698", 7e8, time.time() - 7900)]
    app.seat.gate.clear()

    async def stop(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        now = [1000.0]
        app.push_screen(StopScreen(app.seat, FLEET[0], lambda: now[0]))
        await sees(pilot, "2h 11m ago")
        await pilot.press("enter")
        now[0] += 42
        await sees(pilot, "killed in 1m 18s")

    assert snap_compare(app, terminal_size=(80, 24), run_before=stop)

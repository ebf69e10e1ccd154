"""Every screen and dialog as a picture: large and small, dark, light and without colour.

Look at each picture before it is accepted (`pytest --snapshot-update`): would you live with it for a week?
"""

import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from dflash_tui import paths
from dflash_tui.store import panel_files
from dflash_tui.ui import catalog

from .pictures import DARK, LIGHT, NO_COLOUR, Album, Scene, take_pictures
from .scenes import of_compare, of_control, of_hosts, of_logs, of_query, of_runs

SCENES = (
    *of_runs.SCENES,
    *of_hosts.SCENES,
    *of_query.SCENES,
    *of_logs.SCENES,
    *of_compare.SCENES,
    *of_control.SCENES,
)
RECIPE_SCHEMA = """{"keys": {
  "target": {"type": "string", "required": true, "unit": "", "help": "The model to draft for."},
  "lr": {"type": "number", "default": 0.0006, "exclusive_min": 0, "max": 1, "unit": "", "help": "Peak learning rate."},
  "noise.std": {"type": "number", "default": 0.05, "min": 0, "unit": "", "help": "Noise at its strongest."},
  "total_steps": {"type": "integer", "nullable": true, "default": null, "min": 1, "unit": "steps", "help": "Steps."}
}}"""


@pytest.fixture(autouse=True)
def nothing_else_changes_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ssh_config: Path) -> None:
    """A trainer with four keys and two recipes, a catalog of two panels, two hosts in ~/.ssh/config, UTC."""
    folder = tmp_path / "trainer"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipe_schema.json").write_text(RECIPE_SCHEMA)
    for name in ("paper", "tiny"):
        (folder / "recipes" / f"{name}.toml").write_text('target = "tiny"\ntotal_steps = 700\n')
    bundled = paths.bundled
    monkeypatch.setattr(paths, "bundled", lambda name: folder if name == "trainer" else bundled(name))
    two = [panel_files.parse(name, tmp_path, f"-- The {name}.\nselect 1") for name in ("loss", "lr")]
    monkeypatch.setattr(catalog, "load_panels", lambda: two)
    ssh_config.write_text("Host gpu7 gpu8\n  User root\nHost *\n")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def album(snapshot: SnapshotAssertion, tmp_path: Path) -> Album:
    return Album(snapshot, tmp_path)


def taken_in(*looks: str) -> pytest.MarkDecorator:
    scenes = [scene for scene in SCENES if any(scene.pictures(*looks))]
    return pytest.mark.parametrize("scene", scenes, ids=lambda scene: scene.name)


@taken_in(DARK, LIGHT)
async def test_in_colour(scene: Scene, album: Album) -> None:
    await take_pictures(scene, album, DARK, LIGHT)
    assert album.unlike == []


@taken_in(NO_COLOUR)
async def test_without_colour(scene: Scene, album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await take_pictures(scene, album, NO_COLOUR)
    assert album.unlike == []

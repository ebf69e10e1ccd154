"""What every test gets: an empty home of its own, and never the person's."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, nothing of what is tested.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# Several tests run at a time, so no thread of torch has a core for itself, and no trainer has to find that out.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What collecting imports, 800,000 objects, lives until the end: no search for garbage has to go through them.
gc.disable()

DATA = Path(__file__).parent / "data"
pytest_plugins = ["tests.pvehost.fixtures"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: none is begun when the other workers have ended."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    monkeypatch.setenv("DFLASH_TUI_HOME", str(place))
    return place


@pytest.fixture
def data() -> Path:
    return DATA

"""What every test gets: an empty home of its own, and never the person's."""

from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
pytest_plugins = ["tests.pvehost.fixtures"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    monkeypatch.setenv("DFLASH_TUI_HOME", str(place))
    return place


@pytest.fixture
def data() -> Path:
    return DATA

"""Threads spin where cores are free, and sleep where somebody else wants them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer import waiting

HZ = 100


class Machine:
    """/proc/stat of four cores, of which so many are busy while each look lasts."""

    def __init__(self, file: Path, busy: list[float]) -> None:
        self.file, self.busy = file, iter(busy)
        self.work, self.idle, self.num_looks = 1000.0, 5000.0, 0
        self.sleep(0, busy=0)

    def sleep(self, seconds: float, busy: float | None = None) -> None:
        used = next(self.busy) if busy is None else busy
        self.num_looks += busy is None
        self.work, self.idle = self.work + HZ * seconds * used, self.idle + HZ * seconds * (4 - used)
        half = self.work / 2
        self.file.write_text(f"cpu  {half:.0f} 0 {half:.0f} {self.idle:.0f} 0 0 0 0 0 0\ncpu0 1 2 3 4\n")


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Nothing is said of how threads wait, and nothing stays said."""
    before = dict(os.environ)
    os.environ.pop("OMP_WAIT_POLICY", None)
    os.environ.pop("GOMP_SPINCOUNT", None)
    yield
    os.environ.clear()
    os.environ.update(before)


def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: list[float]) -> tuple[str | None, int]:
    machine = Machine(tmp_path / "stat", busy)
    monkeypatch.setattr(waiting, "_STAT", machine.file)
    monkeypatch.setattr("time.sleep", machine.sleep)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    waiting.choose_waiting()
    return os.environ.get("OMP_WAIT_POLICY"), machine.num_looks


@pytest.mark.parametrize(
    ("busy", "wanted", "looks"),
    [
        ([0.0], None, 1),
        ([0.4], None, 1),
        # The session draws its first screen.
        ([1.0, 1.0, 0.1], None, 3),
        ([1.0] * 6, "PASSIVE", 6),
        ([4.0] * 6, "PASSIVE", 6),
    ],
)
def test_who_waits_sleeps_where_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: list[float], wanted: str | None, looks: int
) -> None:
    assert policy(tmp_path, monkeypatch, busy) == (wanted, looks)


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "ACTIVE"), ("GOMP_SPINCOUNT", "300")])
def test_what_a_person_said_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    os.environ[name] = value
    before = dict(os.environ)
    assert policy(tmp_path, monkeypatch, [4.0] * 6)[1] == 0
    assert dict(os.environ) == before


@pytest.mark.parametrize("text", [None, "", "cpu  one two"])
def test_where_nobody_tells_threads_sleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    file = tmp_path / "stat"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(waiting, "_STAT", file)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    waiting.choose_waiting()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"

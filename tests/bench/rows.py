"""One line of the table, and how it is measured: fresh interpreters, medians, peers that take turns with us."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
MILLION = 1_000_000
SHAPES = ("story", "trainer")


@dataclass(frozen=True)
class Row:
    """One entry of bench.json. A peer that is not there has neither `value` nor `met`, and its `note` says why."""

    bar: str
    value: float | None
    limit: float | None
    met: bool | None
    note: str


def measured(bar: str, value: float, limit: float | None, note: str) -> Row:
    """A row; it is met when `value` is at most `limit`."""
    return Row(bar, round(value, 4), limit, None if limit is None else value <= limit, note)


def at_least(bar: str, value: float, limit: float, note: str) -> Row:
    """A row; it is met when `value` is `limit` or more."""
    return Row(bar, round(value, 4), limit, value >= limit, note)


def worst(bar: str, values: dict[str, float], limit: float | None, note: str) -> Row:
    """A row of several measurements, by name: the bar holds for the highest, the note has them all."""
    each = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return measured(bar, max(values.values()), limit, f"{each}; {note}")


def environment(home: Path) -> dict[str, str]:
    """Of a process that is measured: `home` is where its store lies. Bytecode is kept, as that of the peers is which
    pip installed: without it each start would compile all of ours.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"DFLASH_TUI_HOME": str(home), "PYTHONPATH": str(ROOT)}


def wall_s(argv: list[str | Path], home: Path) -> float:
    """Seconds of a whole process, start-up included. `home` is where its store lies."""
    begun = time.perf_counter()
    subprocess.run(argv, env=environment(home), check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begun


def ask(program: str, home: Path, *words: str | Path, python: str | Path = sys.executable) -> Any:
    """What a program of programs/ prints in a fresh interpreter, as JSON; `wall_s` of the whole process beside it."""
    begun = time.perf_counter()
    done = subprocess.run(
        [python, PROGRAMS / f"{program}.py", *words],
        env=environment(home),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    took = time.perf_counter() - begun
    return {"wall_s": took, **json.loads(done.stdout)}


def medians(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each measurement. They take turns, so that a busy minute hits them all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            times[name].append(measure())
    return {name: statistics.median(found) for name, found in times.items()}

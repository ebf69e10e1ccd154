"""A session over a million steps: its first screen, its memory with the run on screen, and one redraw of everything."""

import sys
from pathlib import Path

from tests.bench.rows import MILLION, PROGRAMS, Row, ask, measured, medians
from tests.bench.stores import copy_of, store_of
from tests.bench.terminal import terminal

_ROUNDS = 7
_SESSION = (sys.executable, "-m", "dflash_tui")
_LOOK_S = 5.0


def measure(folder: Path) -> list[Row]:
    home = copy_of(store_of(folder, MILLION, "story"), "session")
    return [_first_screen(home), _memory(home), _redraw(home)]


def _first_screen(home: Path) -> Row:
    def until(argv: tuple[str, ...], words: str) -> float:
        with terminal(argv, home) as screen:
            return screen.wait_for(words)

    minimal = (sys.executable, str(PROGRAMS / "minimal_app.py"))
    found = medians(
        {"ours": lambda: until(_SESSION, f"{MILLION:,}"), "minimal": lambda: until(minimal, "Hello")}, _ROUNDS
    )
    note = (
        f"{found['ours']:.2f} s from exec to the list with its run, {found['minimal']:.2f} s of a minimal Textual app"
    )
    return measured("first_screen_1m", found["ours"] / found["minimal"], 2.5, note)


def _memory(home: Path) -> Row:
    with terminal(_SESSION, home, (200, 60)) as screen:
        screen.wait_for(f"{MILLION:,}")
        screen.press(b"\r")
        opened_s = screen.wait_for("throughput")
        screen.watch(_LOOK_S)
        note = f"MB resident, 200x60, the dashboard {_LOOK_S:.0f} s on screen; its first panels after {opened_s:.2f} s"
        return measured("rss_1m", screen.memory_mb(), 250.0, f"{note}; peak {screen.memory_mb('VmHWM'):.0f}")


def _redraw(home: Path) -> Row:
    found = ask("redraw", home)
    note = (
        f"ms for all {found['panels']} panels in sight at 200x60, median of {found['rounds']}, one a turn of the event"
        f" loop, a turn at most {found['turn_ms']:.1f}; to put the screen together {found['compose_ms']:.1f} more"
    )
    return measured("redraw", found["draw_ms"], 10.0, note)

"""What the shell waits for before anything is asked: `--help`, against an interpreter that does nothing."""

import sys
from pathlib import Path

from tests.bench.rows import Row, measured, medians, wall_s

_HELP = "import sys; from dflash_tui.cli import main; sys.argv[1:] = ['--help']; main()"


def measure(folder: Path) -> list[Row]:
    found = medians(
        {
            "help": lambda: wall_s([sys.executable, "-c", _HELP], folder),
            "bare": lambda: wall_s([sys.executable, "-c", "pass"], folder),
        },
        9,
    )
    ours, bare = found["help"] * 1000, found["bare"] * 1000
    return [measured("help", ours / bare, None, f"{ours:.0f} ms against {bare:.0f} ms of a bare interpreter")]

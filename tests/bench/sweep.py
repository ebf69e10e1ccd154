"""50 connections x 10 runs on one loopback sshd: a sweep of all, and what following them takes of a core."""

import shutil
from pathlib import Path

from tests.bench import peers
from tests.bench.rows import Row, ask, measured
from tests.pvehost.sshd import missing_sshd


def measure(folder: Path) -> list[Row]:
    if why := missing_sshd():
        return [peers.missing("sweep_50x10", peers.NoPeerError(why))]
    home = folder / "sweep"
    # Nothing of it can be used again.
    shutil.rmtree(home, ignore_errors=True)
    found = ask("sweep", home)
    sweeps = f"ms, median of 40, p95 {found['p95_ms']:.0f}, {found['cpu_ms']:.0f} of our own CPU; the rest is sshd's"
    steady = "% of a core, 500 runs that log a line a second, each asked every 2 s, mirrors and tables included;"
    return [
        measured("sweep_50x10", found["median_ms"], 50.0, f"{sweeps} and the agents', on this same machine"),
        measured(
            "sweep_50x10: steady",
            found["list_pct"],
            10.0,
            f"{steady} {found['focus_pct']:.1f} with one on screen, asked every 0.25 s, the others every 10",
        ),
    ]

"""From a line that is written on the far side to the screen, and from a key to the screen over a slow link."""

from pathlib import Path

from tests.bench import peers
from tests.bench.rows import Row, ask, measured
from tests.bench.stores import log_of
from tests.pvehost.sshd import missing_sshd

_STEPS = 23_000
_LIMITS = {"local": 400.0, "ssh": 1300.0}


def measure(folder: Path) -> list[Row]:
    log, rows = log_of(folder, _STEPS, "story"), []
    why = missing_sshd()
    for kind, limit in _LIMITS.items():
        bar = f"line_to_screen_{kind}"
        if why:
            rows.append(peers.missing(bar, peers.NoPeerError(why)))
            continue
        found = ask("line_to_screen", folder / bar, kind, log)
        note = f"ms, 120x40, a run of {_STEPS:,} steps in focus, median of 20 at any moment, p95 {found['p95_ms']:.0f}"
        rows.append(measured(bar, found["median_ms"], limit, note))
    if why:
        return [*rows, peers.missing("key_to_screen_slow_link", peers.NoPeerError(why))]
    keys = ask("line_to_screen", folder / "key_to_screen", "keys", log)
    note = (
        f"ms, a host that is followed over a round trip of 150 ms more, median of 40, p95 {keys['slow_p95_ms']:.0f};"
        f" {keys['fast_median_ms']:.0f} and {keys['fast_p95_ms']:.0f} without"
    )
    return [*rows, measured("key_to_screen_slow_link", keys["slow_median_ms"], 100.0, note)]

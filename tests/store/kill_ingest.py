"""The owner killed with -9 at random moments of all that it does. Short form in test_killed_writer.py; the long one:

    python -m tests.store.kill_ingest [--times 200] [--seed 0]

Whatever was told to be done is there afterwards, once: lines that a client was told are committed, rows that were in
the store before. And what was cut off goes on: the same ingest again brings the rest.
"""

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.access import writer
from dflash_tui.store.base import IngestProgress
from dflash_tui.store.client import StoreClient
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .children import child
from .conftest import rows_of

RUN = "killed"


@dataclass
class Trial:
    """One kill: a log that may be taken in, and how long what is killed takes when it is left alone."""

    log: Path
    num_lines: int
    rng: random.Random
    whole_s: dict[str, float]

    def wait(self, process: "subprocess.Popen[str]", kind: str) -> None:
        """Until a random moment of the work, or its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.rng.random() * self.whole_s.get(kind, 1.0))


def follow(trial: Trial) -> int:
    return _follow(trial, "write")


def checkpoint(trial: Trial) -> int:
    return _follow(trial, "checkpoint")


def _follow(trial: Trial, role: str) -> int:
    """An owner that takes in batch after batch. Returns the lines that it said are committed."""
    with child(role, RUN, str(trial.rng.choice([1, 200, 3000]))) as process:
        trial.wait(process, role)
        process.kill()
        said, _ = process.communicate()
    whole = said[: said.rfind("\n") + 1].split()
    return int(whole[-1]) if whole else 0


def ingest(trial: Trial) -> int:
    with child("ingest", RUN, str(trial.log)) as process:
        trial.wait(process, "ingest")
        process.kill()
        said, _ = process.communicate()
    return int(said) if said.endswith("\n") else 0


def copied(trial: Trial) -> int:
    """Killed when the log is copied and nothing of it taken in."""
    with child("copied", RUN, str(trial.log)) as process:
        process.kill()
    return 0


def ingest_of_a_client(trial: Trial) -> int:
    """The owner of somebody else's ingest. Returns the rows that its client was told."""
    told = [0]

    def hear(progress: IngestProgress) -> None:
        told.append(progress.rows)

    def ask() -> None:
        with contextlib.suppress(DflashError):
            told.append(StoreClient().ingest(RUN, trial.log, progress=hear).rows)

    with child("own") as process:
        client = threading.Thread(target=ask)
        client.start()
        trial.wait(process, "ingest")
        process.kill()
        client.join()
    return max(told)


def rebuild(trial: Trial) -> int:
    return _over_a_full_store(trial, "rebuild")


def compact(trial: Trial) -> int:
    return _over_a_full_store(trial, "compact")


def reopen(trial: Trial) -> int:
    """An owner in the middle of making the database from the mirrors."""
    return _over_a_full_store(trial, "reopen")


def _over_a_full_store(trial: Trial, role: str) -> int:
    with writer() as store:
        store.ingest(RUN, trial.log)
    if role == "reopen":
        paths.database_file().unlink()
    with child(role) as process:
        trial.wait(process, role)
        process.kill()
    return trial.num_lines


KINDS: tuple[Callable[[Trial], int], ...] = (
    ingest_of_a_client, ingest, follow, copied, checkpoint, rebuild, compact, reopen,
)  # fmt: skip


def violations(trial: Trial, kind: Callable[[Trial], int], acknowledged: int) -> list[str]:
    """What is not as it should be, after the store was opened again and after what was cut off was done again."""
    found = []
    with writer() as store:
        mirror = Mirror(RUN).path(TRAIN_LOG)
        copy = mirror.read_bytes() if mirror.exists() else b""
        num_lines = copy.count(b"\n")
        found += _wrong_rows(rows_of(store, _SQL), num_lines)
        if num_lines < acknowledged:
            found.append(f"{acknowledged} lines were acknowledged, {num_lines} are there")
        cursors = rows_of(store, "select byte_offset, line_no from cursors")
        if copy and cursors != [(copy.rfind(b"\n") + 1, num_lines + 1)]:
            found.append(f"the cursor is at {cursors}")
        if kind not in (follow, checkpoint):
            store.ingest(RUN, trial.log)
            found += _wrong_rows(rows_of(store, _SQL), trial.num_lines)
    left = {file.name for file in paths.data_dir().iterdir()}
    if left - {"dflash.duckdb", "store.lock", "run", "mirrors", "snapshot"}:
        found.append(f"left behind: {sorted(left)}")
    return found


_SQL = """
select count(*), count(distinct step), count(distinct line_no), coalesce(max(step), -1),
  coalesce(min(loss - step), 0.5), coalesce(max(loss - step), 0.5),
  (select count(*) from rejects), (select count(*) from steps) from records
"""


def _wrong_rows(rows: list[tuple[object, ...]], num_lines: int) -> list[str]:
    right = [(num_lines, num_lines, num_lines, num_lines - 1, 0.5, 0.5, 0, num_lines)]
    return [] if rows == right else [f"{rows} instead of {right}"]


def write_log(folder: Path, num_lines: int) -> Path:
    log = folder / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(num_lines)))
    return log


def take_times(log: Path, home: Path) -> dict[str, float]:
    """Seconds that each piece of work takes when nobody kills it."""
    os.environ["DFLASH_TUI_HOME"] = str(home)
    times = {}
    for role, words in (("ingest", [RUN, str(log)]), ("rebuild", []), ("compact", []), ("reopen", [])):
        if role == "reopen":
            paths.database_file().unlink()
        with child(role, *words) as process:
            begun = time.monotonic()
            process.wait()
            times[role] = time.monotonic() - begun
    shutil.rmtree(home)
    return times


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--times", type=int, default=200)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--lines", type=int, default=150_000)
    given = words.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kill-ingest-"))
    counted: Counter[str] = Counter()
    reopened: list[float] = []
    num_violations = 0
    try:
        log = write_log(folder, given.lines)
        whole_s = take_times(log, folder / "home")
        print("uninterrupted:", ", ".join(f"{what} {seconds:.2f} s" for what, seconds in whole_s.items()))
        for number in range(given.times):
            kind = KINDS[number % len(KINDS)]
            os.environ["DFLASH_TUI_HOME"] = str(folder / f"home-{number}")
            trial = Trial(log, given.lines, random.Random(given.seed * 1000 + number), whole_s)
            acknowledged = kind(trial)
            begun = time.monotonic()
            with writer():
                reopened.append(time.monotonic() - begun)
            found = violations(trial, kind, acknowledged)
            counted[kind.__name__] += 1
            num_violations += len(found)
            for violation in found:
                print(f"kill {number} ({kind.__name__}): {violation}")
            shutil.rmtree(folder / f"home-{number}")
    finally:
        shutil.rmtree(folder)
    print(f"{given.times} kills ({', '.join(f'{kind} {times}' for kind, times in counted.items())})")
    print(f"reopened in {1000 * statistics.median(reopened):.0f} ms (median), {1000 * max(reopened):.0f} ms (longest)")
    print(f"{num_violations} violations")
    return int(num_violations > 0)


if __name__ == "__main__":
    sys.exit(main())

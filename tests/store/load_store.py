"""Many who ask and two sessions, while rows arrive: nobody sees half a batch, nobody an error.

The short form is test_load.py; the long one:

    python -m tests.store.load_store [--seconds 60] [--clients 8] [--rate 2000]

Clients are whole `dflash-tui query` processes. Halfway the session that owns the store is stopped, and the other one
takes over. Rows come in batches, each a file that grew and an `ingest` through the owner of the moment.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dflash_tui.store.access import reader
from dflash_tui.store.lock import holder

from .children import child
from .conftest import rows_of

NUM_RUNS = 10
BATCH_ROWS = 1000
SQL = "select run, count(*) as n, count(distinct step) as d, max(step) as last, sum(step) as s from steps group by run"


@dataclass
class Load:
    """What happens at the same time, and what was seen of it. `acknowledged` counts the rows of each run that an
    ingest has said are in."""

    folder: Path
    seconds: float
    acknowledged: dict[str, int] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    ingests_s: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def feed(self, rate: float) -> None:
        """`rate` rows a second, a batch after another, each into the next run; by a process of its own."""
        with child("feed", str(self.folder), str(NUM_RUNS), str(BATCH_ROWS), str(rate)) as process:
            assert process.stdin and process.stdout
            threading.Thread(target=lambda: (self.is_over.wait(), process.terminate())).start()
            for line in process.stdout:
                run, told = line.split(maxsplit=1)
                if run == "error":
                    self.violations.append(f"ingest: {told.strip()}")
                    continue
                total, seconds = told.split()
                self.acknowledged[run] = int(total)
                self.ingests_s.append(float(seconds))

    def ask(self) -> None:
        """One client after another; each must see what the ones before it saw, and what was acknowledged."""
        seen: dict[str, int] = {}
        while not self.is_over.is_set():
            before = dict(self.acknowledged)
            begun = time.monotonic()
            said = subprocess.run(
                [sys.executable, "-m", "dflash_tui", "query", SQL, "--format", "json"], capture_output=True, text=True
            )
            self.latencies_s.append(time.monotonic() - begun)
            if said.returncode or said.stderr:
                self.violations.append(f"query: exit {said.returncode}: {said.stderr.strip()}")
                continue
            found = {row["run"]: row for row in json.loads(said.stdout)}
            self._check(found, seen, before)
            seen = {run: row["n"] for run, row in found.items()}

    def _check(self, found: dict[str, dict[str, int]], seen: dict[str, int], acknowledged: dict[str, int]) -> None:
        for run, row in found.items():
            num = row["n"]
            right = {"run": run, "n": num, "d": num, "last": num - 1, "s": num * (num - 1) // 2}
            if row != right or num % BATCH_ROWS:
                self.violations.append(f"torn: {row}")
        for run, least in {**seen, **acknowledged}.items():
            num = found[run]["n"] if run in found else 0
            if num < max(least, seen.get(run, 0)):
                self.violations.append(f"lost: {run} has {num} rows, {least} were seen before")

    def change_owner(self, first: "subprocess.Popen[str]", second: "subprocess.Popen[str]", how: int) -> None:
        """Halfway the first session, the owner, is stopped."""
        try:
            self.is_over.wait(self.seconds / 2)
            first.send_signal(how)
            self.is_over.wait()
            taken = re.match(r"PID (\d+)", holder())
            if not taken or int(taken[1]) != second.pid:
                self.violations.append(f"{holder()} owns the store, and not the second session, PID {second.pid}")
        finally:
            for session in (first, second):
                with suppress(ProcessLookupError):
                    session.send_signal(signal.SIGINT)
                _, said = session.communicate(timeout=60)
                if session.returncode not in (130, -signal.SIGKILL) or "Traceback" in said:
                    self.violations.append(f"session: exit {session.returncode}: {said}")

    def run(self, num_clients: int, rate: float, how: int) -> None:
        """All of it for `seconds`, the first session stopped by the signal `how`; afterwards every acknowledged row is
        there."""
        threads = [
            threading.Thread(target=self.change_owner, args=(_session(), _session(), how)),
            threading.Thread(target=self.feed, args=(rate,)),
            *(threading.Thread(target=self.ask) for _ in range(num_clients)),
        ]
        for thread in threads:
            thread.start()
        time.sleep(self.seconds)
        self.is_over.set()
        for thread in threads:
            thread.join()
        with reader() as store:
            found = dict(rows_of(store, "select run, count(*) from steps group by run"))
        # The last batch may be in, and its feeder have ended before it said so.
        for run in found.keys() | self.acknowledged:
            num, least = found.get(run, 0), self.acknowledged.get(run, 0)
            if num not in (least, least + BATCH_ROWS):
                self.violations.append(f"{run} has {num} rows at the end, {least} were acknowledged")


def _session() -> "subprocess.Popen[str]":
    session = subprocess.Popen([sys.executable, "-m", "dflash_tui", "watch"], stderr=subprocess.PIPE, text=True)
    assert session.stderr and "collect" in session.stderr.readline()
    return session


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--seconds", type=float, default=60)
    words.add_argument("--clients", type=int, default=8)
    words.add_argument("--rate", type=float, default=2000)
    words.add_argument("--kill", action="store_true", help="stop the first session by kill -9, not by Ctrl-C")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-store-") as folder:
        os.environ["DFLASH_TUI_HOME"] = f"{folder}/home"
        load = Load(Path(folder), given.seconds)
        load.run(given.clients, given.rate, signal.SIGKILL if given.kill else signal.SIGINT)
    num_rows = sum(load.acknowledged.values())
    print(f"{num_rows:,} rows in {given.seconds:g} s ({num_rows / given.seconds:,.0f}/s), one change of the owner")
    for what, times in (("query, a whole process", load.latencies_s), ("ingest of a batch", load.ingests_s)):
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(
            f"{len(times)} x {what}: p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms, max {1000 * max(times):.0f} ms"
        )
    for violation in load.violations[:20]:
        print(violation)
    print(f"{len(load.violations)} torn or lost reads and errors")
    return int(bool(load.violations))


if __name__ == "__main__":
    sys.exit(main())

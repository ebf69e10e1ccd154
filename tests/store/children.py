"""Other processes for the tests: each role is a fresh interpreter that says a line when it is where it should be."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def child(role: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A process in `role` that has said its first line; killed when the `with` is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.children", role, *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def stopped(process: subprocess.Popen[str]) -> Iterator[None]:
    """A child that stands still, as after Ctrl-Z."""
    process.send_signal(signal.SIGSTOP)
    # On a busy machine its other threads go on, and answer, until the one that has the signal gets a turn.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def own() -> None:
    """The owner until stdin ends."""
    from dflash_tui.store.access import writer

    with writer():
        print("ready", flush=True)
        sys.stdin.read()


def write(run_id: str, batch: str) -> None:
    """The owner, taking in `batch` more lines again and again; says how many are acknowledged."""
    from dflash_tui.runs import RunRecord
    from dflash_tui.store.access import writer
    from dflash_tui.store.database import Database
    from tests.store.conftest import grow

    with writer() as store:
        assert isinstance(store, Database)
        store.register_run(RunRecord(run_id, run_id, "train", "box", "/w", "/w/log", 1.0))
        print("ready", flush=True)
        step = 0
        while True:
            lines = [f'{{"step": {step + n}, "loss": {step + n}.5}}\n' for n in range(int(batch))]
            # The last line is torn in two, as a poll would.
            whole = "".join(lines).encode()
            grow(run_id, whole[:-7])
            store.take_in(run_id)
            grow(run_id, whole[-7:])
            store.take_in(run_id)
            step += int(batch)
            print(step, flush=True)


def ingest(run_id: str, file: str, is_ready: bool = True) -> None:
    """A command that takes in a log."""
    from dflash_tui.store.access import writer

    with writer() as store:
        if is_ready:
            print("ready", flush=True)
        print(store.ingest(run_id, Path(file)).rows, flush=True)


def copied(run_id: str, file: str) -> None:
    """A command that has copied a log and has not begun to take it in."""
    from dflash_tui.store.database import Database

    def stop(*words: object, **more: object) -> None:
        print("ready", flush=True)
        time.sleep(600)

    for name in ("take_in", "take_in_all"):
        if hasattr(Database, name):
            setattr(Database, name, stop)
    ingest(run_id, file, is_ready=False)


def checkpoint(run_id: str, batch: str) -> None:
    """The owner, writing its log into the file after each batch; says how many lines are acknowledged."""
    from dflash_tui import paths
    from dflash_tui.store.database import Database

    take_in = Database.take_in

    def and_checkpoint(self: Database, run_id: str) -> object:
        summary = take_in(self, run_id)
        self.snapshot(paths.data_dir() / "snapshot")
        return summary

    Database.take_in = and_checkpoint  # type: ignore[method-assign,assignment]
    write(run_id, batch)


def rebuild() -> None:
    """`doctor --rebuild`, to its end."""
    from dflash_tui.store.base import StoreOptions
    from dflash_tui.store.compaction import rebuild

    print("ready", flush=True)
    rebuild(StoreOptions())


def compact() -> None:
    """`compact`, to its end."""
    from dflash_tui.store.base import StoreOptions
    from dflash_tui.store.compaction import compact

    print("ready", flush=True)
    compact(lambda sentence: None, StoreOptions())


def reopen(until: str = "") -> None:
    """An owner that first has to take in what the mirrors hold; one that stays does so until stdin ends."""
    from dflash_tui.store.access import writer

    print("ready", flush=True)
    with writer():
        if until == "stay":
            sys.stdin.read()


def wait_for_turn() -> None:
    """A session that is no owner until the owner goes."""
    import asyncio

    from dflash_tui.store.base import StoreOptions
    from dflash_tui.store.owner import owner_gone, take_ownership

    async def session() -> None:
        print("ready", flush=True)
        while True:
            owner = take_ownership(lambda sentence: None, StoreOptions())
            if owner:
                async with owner:
                    print("owner", flush=True)
                    await asyncio.to_thread(sys.stdin.read)
                return
            await owner_gone()

    asyncio.run(session())


def ask(sql: str) -> None:
    """A client in the middle of a query."""
    from dflash_tui.store.client import StoreClient

    print("ready", flush=True)
    with StoreClient().query(sql) as answer:
        print(answer.rows(), flush=True)


def visit(times: str) -> None:
    """Commands that own the store for a moment, one after another."""
    from dflash_tui.runs import RunRecord
    from dflash_tui.store.access import writer

    print("ready", flush=True)
    for n in range(int(times)):
        with writer() as store:
            store.register_run(RunRecord(f"visit-{n}", f"visit-{n}", "train"))
        time.sleep(0.01)


def feed(folder: str, num_runs: str, batch_rows: str, rate: str) -> None:
    """Logs that grow by batches, and an ingest of each at once; says what is acknowledged."""
    from dflash_tui.errors import DflashError
    from dflash_tui.store.access import writer

    print("ready", flush=True)
    num_rows, totals = int(batch_rows), [0] * int(num_runs)
    begun, number = time.monotonic(), 0
    while True:
        time.sleep(max(0.0, begun + number * num_rows / float(rate) - time.monotonic()))
        run, first = number % len(totals), totals[number % len(totals)]
        log = Path(folder) / f"run-{run}.jsonl"
        with log.open("a") as file:
            file.writelines(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(first, first + num_rows))
        totals[run] += num_rows
        number += 1
        asked = time.monotonic()
        try:
            with writer() as store:
                summary = store.ingest(f"run-{run}", log)
            # An owner that took over after a kill may have read what the one before it had copied.
            assert summary.last_step == totals[run] - 1 and summary.rows in (0, num_rows), summary
        except (DflashError, AssertionError) as e:
            print(f"error {e!r}", flush=True)
            return
        else:
            print(f"run-{run} {totals[run]} {time.monotonic() - asked:.3f}", flush=True)


def read() -> None:
    """Commands that only ask, one after another, without an end; each holds the file for a while."""
    from dflash_tui.store.access import reader

    print("ready", flush=True)
    while True:
        with reader() as store, store.query("select count(*) from runs") as answer:
            assert answer.rows() > [(0,)]
            time.sleep(0.1)


def read_long() -> None:
    """A command that reads the file itself, and takes its time."""
    from dflash_tui.store.access import reader

    with reader() as store, store.query("select range from range(1_000_000)") as answer:
        next(answer.batches())
        print("ready", flush=True)
        time.sleep(600)


def hold(path: str) -> None:
    """A program that knows nothing of us and has the file open for writing."""
    import duckdb

    connection = duckdb.connect(path)
    print("ready", flush=True)
    time.sleep(600)
    connection.close()


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    roles = {
        "own": own, "write": write, "ingest": ingest, "wait": wait_for_turn, "ask": ask, "hold": hold, "visit": visit,
        "read": read, "copied": copied, "checkpoint": checkpoint, "rebuild": rebuild, "compact": compact,
        "reopen": reopen, "read_long": read_long, "feed": feed,
    }  # fmt: skip
    roles[role](*words)

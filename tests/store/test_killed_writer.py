"""The owner killed or interrupted at random moments of an intake: no row lost, none doubled."""

import contextlib
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_tui.store.access import writer
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .children import child
from .conftest import rows_of
from .kill_ingest import KINDS, Trial, violations, write_log

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("batch", "seed"), [("1", 1), ("300", 2), ("4000", 3)])
def test_a_killed_owner_loses_and_doubles_nothing(batch: str, seed: int) -> None:
    rng = random.Random(seed)
    acknowledged = 0
    with child("write", f"run-{batch}", batch) as process:
        assert process.stdout
        for _ in range(rng.randrange(2, 12)):
            acknowledged = int(process.stdout.readline())
        # A fraction of a batch later, mostly in the middle of the next one.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.random() * 0.03)
        process.kill()
        process.wait()
    copy = Mirror(f"run-{batch}").path(TRAIN_LOG).read_bytes()
    num_lines = copy.count(b"\n")
    assert num_lines >= acknowledged
    with writer() as store:
        counted = rows_of(
            store, "select count(*), count(distinct step), max(step), max(line_no), min(loss - step) from steps"
        )
        assert counted == [(num_lines, num_lines, num_lines - 1, num_lines, 0.5)]
        assert rows_of(store, "select byte_offset, line_no from cursors") == [(copy.rfind(b"\n") + 1, num_lines + 1)]
        [run] = store.runs()
        assert (run.name, run.host, run.step) == (f"run-{batch}", "box", num_lines - 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kill_at_a_random_moment_loses_and_doubles_nothing(kind: Callable[[Trial], int], tmp_path: Path) -> None:
    trial = Trial(write_log(tmp_path, 20_000), 20_000, random.Random(), dict.fromkeys(("ingest", "rebuild"), 0.3))
    acknowledged = kind(trial)
    assert violations(trial, kind, acknowledged) == []


@pytest.mark.parametrize("wait_s", [0.0, 0.2])
def test_ctrl_c_ends_an_ingest_that_can_go_on_later(tmp_path: Path, wait_s: float) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {step}.5, "lr": 0.001}}\n' for step in range(150_000)))
    with child("ingest", "run", str(log)) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (-signal.SIGINT, 0)
    with writer() as store:
        store.ingest("run", log)
        assert rows_of(store, "select count(*), count(distinct step) from steps") == [(150_000, 150_000)]

"""Ctrl-C at random moments of an ingest, by a command that owns the store or by a client of a session."""

import random
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from .conftest import dflash, watching

LINES = 200_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "log.jsonl"
    file.write_text("".join(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(LINES)))
    return file


@pytest.mark.parametrize("has_session", [False, True])
def test_what_was_committed_stays_and_the_next_one_goes_on(log: Path, home: Path, has_session: bool) -> None:
    rng = random.Random()
    with watching() if has_session else nullcontext():
        for _ in range(3):
            process = subprocess.Popen(
                [sys.executable, "-m", "dflash_tui", "ingest", str(log), "--run", "a"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2 + rng.random())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            assert err == ""
            # Its end may have come first; an interpreter that is about to come or go dies of the signal.
            assert process.returncode in ({130, -signal.SIGINT, 0} if out else {130, -signal.SIGINT}), out
        said = dflash("ingest", str(log), "--run", "a")
        assert (said.code, said.err) == (0, "")
        counted = dflash("query", "select count(*) n, count(distinct step) d, count(distinct line_no) l from steps")
        assert counted.out == f"n,d,l\n{LINES},{LINES},{LINES}\n"
    assert dflash("doctor").code == 0

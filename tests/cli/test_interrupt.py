"""Ctrl-C at random moments of an ingest, by a command that owns the store or by a client of a session."""

import gzip
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from dflash_tui import paths

from .conftest import dflash, watching

LINES = 200_000
rng = random.Random()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "log.jsonl"
    file.write_text("".join(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(LINES)))
    return file


def interrupted(*words: str) -> None:
    """One command, which gets a Ctrl-C, or some in a row, at a random moment."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dflash_tui", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.2 + rng.random())
    for _ in range(rng.choice([1, 1, 2, 5])):
        process.send_signal(signal.SIGINT)
        time.sleep(rng.random() * 0.1)
    out, err = process.communicate(timeout=60)
    assert err == ""
    # Its end may have come first; an interpreter that is about to come or go dies of the signal.
    assert process.returncode in ({130, -signal.SIGINT, 0} if out else {130, -signal.SIGINT}), out


@pytest.mark.parametrize("has_session", [False, True])
def test_what_was_committed_stays_and_the_next_one_goes_on(log: Path, home: Path, has_session: bool) -> None:
    with watching() if has_session else nullcontext():
        for _ in range(3):
            interrupted("ingest", str(log), "--run", "a")
        said = dflash("ingest", str(log), "--run", "a")
        assert (said.code, said.err) == (0, "")
        counted = dflash("query", "select count(*) n, count(distinct step) d, count(distinct line_no) l from steps")
        assert counted.out == f"n,d,l\n{LINES},{LINES},{LINES}\n"
    assert dflash("doctor").code == 0


@pytest.mark.parametrize("words", [["doctor", "--rebuild"], ["compact"]], ids=" ".join)
def test_the_old_database_stays_until_the_new_one_is_there(log: Path, home: Path, words: list[str]) -> None:
    assert dflash("ingest", str(log), "--run", "a").code == 0
    for _ in range(3):
        interrupted(*words)
        assert dflash("query", "select count(*) n from steps").out == f"n\n{LINES}\n"
    assert dflash("doctor").code == 0
    assert [file.name for file in paths.data_dir().glob("dflash*")] == ["dflash.duckdb"]


def test_ctrl_c_ends_the_unpacking_of_a_large_log(tmp_path: Path, home: Path) -> None:
    packed = tmp_path / "log.jsonl.gz"
    # Half a GB: some seconds, in which nothing is committed.
    block = b"".join(
        b'{"step": %d, "note": "%s"}\n' % (step, random.randbytes(4).hex().encode() * 100) for step in range(64)
    )
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for _ in range(10_000):
            file.write(block)
    process = subprocess.Popen([sys.executable, "-m", "dflash_tui", "ingest", str(packed)])
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (130, -signal.SIGINT)
    assert not paths.mirrors_dir().joinpath("log").exists()

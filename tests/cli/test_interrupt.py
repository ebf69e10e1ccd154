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


# Pressed while DuckDB's library makes its enums, and while a class is made with an attribute that hears of it.
IN_A_LIBRARY = """
import enum, os, signal, sys
create = enum.EnumType._create_
def press(*words, **names):
    if "_duckdb" in str(names.get("module")) + str(words):
        os.kill(os.getpid(), signal.SIGINT)
    return create(*words, **names)
enum.EnumType._create_ = press
"""
IN_A_CLASS = """
import os, signal, sys
from dflash_tui import cli
class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)
def run(words):
    type("Made", (), {"one": Attribute()})
cli._run = run
"""
AT_HOME = "sys.argv = ['dflash-tui', 'ingest', sys.argv[1]]\nfrom dflash_tui.__main__ import main\nmain()\n"


@pytest.mark.parametrize("moment", [IN_A_LIBRARY, IN_A_CLASS], ids=["library", "class"])
def test_a_ctrl_c_while_something_is_loaded_is_one(log: Path, home: Path, moment: str) -> None:
    argv = [sys.executable, "-c", moment + AT_HOME, str(log)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert not paths.database_file().exists()

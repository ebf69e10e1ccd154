"""Somebody else holds the store and does not answer: the command names the process, with exit code 3, within 3 s."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.store.lock import StoreLock

from ..store.children import child, stopped
from .conftest import dflash, watching

pytestmark = pytest.mark.usefixtures("home", "log")

COMMANDS = [("query", "select 1"), ("runs",), ("report", "run"), ("ingest", "LOG"), ("resume", "run")]
# Each takes less than 3 s. These are five at a time, on a machine that may be busy with other tests.
PATIENCE_S = 15.0


@pytest.fixture
def log(home: Path) -> Path:
    file = home / "run.jsonl"
    home.mkdir()
    file.write_text('{"step": 1, "loss": 2.0}\n')
    assert dflash("ingest", str(file)).code == 0
    return file


@contextmanager
def foreign_program() -> Iterator[int]:
    with child("hold", str(paths.database_file())) as process:
        yield process.pid


@contextmanager
def stopped_session() -> Iterator[int]:
    with watching() as process, stopped(process):
        yield process.pid


@contextmanager
def silent_owner() -> Iterator[int]:
    lock = StoreLock.try_take()
    assert lock
    # A file that is there and opens would be read by who only reads.
    paths.database_file().unlink()
    yield os.getpid()
    lock.release()


@pytest.mark.parametrize("holding", [foreign_program, stopped_session, silent_owner])
def test_whoever_holds_the_store_is_named(holding: type, log: Path) -> None:
    with holding() as pid:
        begun = time.monotonic()
        asked = [
            subprocess.Popen(
                [sys.executable, "-m", "dflash_tui", *(str(log) if word == "LOG" else word for word in words)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for words in COMMANDS
        ]
        for words, process in zip(COMMANDS, asked, strict=True):
            out, err = process.communicate(timeout=30)
            assert time.monotonic() - begun < PATIENCE_S, words
            assert (process.returncode, out) == (3, ""), (words, err)
            [line] = err.splitlines()
            assert f"PID {pid} (" in line, words
    assert dflash("ingest", str(log)).code == 0


def test_one_who_only_reads_is_answered_by_the_file_while_an_owner_to_be_takes_long() -> None:
    lock = StoreLock.try_take()
    assert lock
    said = dflash("query", "select count(*) n from records")
    assert (said.code, said.out) == (0, "n\n1\n")
    lock.release()

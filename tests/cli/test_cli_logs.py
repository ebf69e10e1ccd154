"""`logs -f`: it ends with its run, and its reader's pace is nobody else's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_tui.runs import Cursor, RunEvent, RunRecord
from dflash_tui.store.access import writer
from dflash_tui.store.mirror import Mirror

from .conftest import dflash

pytestmark = pytest.mark.usefixtures("home")


def test_following_a_run_that_is_gone_from_its_host_ends() -> None:
    with writer() as store:
        store.register_run(RunRecord("r", "r", "train", "local", "/w/r", "/w/r/log", 1.0))
        store.event("r", RunEvent(1.0, "state", "absent"))
    Mirror("r").append("attempts/1/output.log", b"one\nlast", Cursor(8, 1, ""))
    said = dflash("logs", "r", "-f")
    assert (said.code, said.out) == (0, "one\nlast\n"), said.err
    said = dflash("logs", "r", "--metrics")
    assert (said.code, said.out, said.err) == (0, "", "r: no such record is here yet\n")


@pytest.mark.parametrize(("num_lines", "end"), [(8, "\n"), (4, "")], ids=["lines", "rest"])
def test_a_reader_that_stands_still_does_not_hold_up_the_store(tmp_path: Path, num_lines: int, end: str) -> None:
    # Eight lines are more than the 64 KiB that a pipe holds; of four, what stands behind the last end is too much.
    line = json.dumps({"step": 2, "note": "x" * 19_500})
    log = tmp_path / "r.jsonl"
    log.write_text('{"step": 1}\n' + "\n".join([line] * num_lines) + end)
    assert dflash("ingest", str(log)).code == 0
    command = [sys.executable, "-m", "dflash_tui", "logs", "r", "--metrics", "-f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as logs:
        assert logs.stdout
        assert logs.stdout.readline() == '{"step": 1}\n'
        said = dflash("query", "select 42 as n", "--format", "json")
        assert logs.poll() is None
        assert logs.stdout.read().splitlines() == [line] * num_lines
        assert logs.wait(20) == 0
    assert said.json() == [{"n": 42}], said.err

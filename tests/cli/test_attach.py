"""`attach`: a log that somebody else's run writes, from the command line to the tables and to its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from .conftest import dflash, from_scratch, on_terminal, refused, wait_until, watching

WRITER = """
import sys, time
with open(sys.argv[1], "w", buffering=1) as log:
    for step in range(10**6):
        print(f"| step {step} | loss {1 / (step + 1):.3f} |", file=log)
        time.sleep(0.02)
"""


def test_a_strangers_log_is_followed_and_its_process_stopped_when_that_is_confirmed(tmp_path: Path) -> None:
    folder = tmp_path / "their 'exp'"
    folder.mkdir()
    log = folder / "train.log"
    (folder / "their.py").write_text(WRITER)
    words = [str(folder / "their.py"), str(log), "a\nb", "--token=s3cret"]
    theirs = subprocess.Popen([sys.executable, *words], start_new_session=True)
    try:
        wait_until(lambda: log.exists() and log.read_text().count("\n") > 3)
        said = from_scratch("attach", "--log", str(log))
        assert said.code == 0, said.err
        run = said.out.strip()
        looks, process, unknown = said.err.splitlines()
        assert looks.startswith(f"{log}: ") and looks.endswith("reads as text")
        assert process.startswith(f"process {theirs.pid}, since ") and process.endswith("(it has the log open)")
        assert "s3cret" not in said.err and "--token=***" in said.err
        assert "its exit code goes elsewhere" in unknown
        assert run.startswith("their-exp-")
        assert "is followed as run" in refused(dflash("attach", "--log", str(log)), 1)
        with watching():
            wait_until(lambda: int(dflash("query", "select count(*) from steps").out.split()[1]) > 10)
            found = dflash("status", run, "--json").json()
            assert (found["state"], found["kind"], found["pid"]) == ("running", "adopted", theirs.pid)
            asked = refused(dflash("stop", run), 2)
            assert f"Process {theirs.pid}, which has its log open, is ended with its children" in asked
            assert "not started from here" in asked and "add --yes" in asked and "s3cret" not in asked
            assert dflash("stop", run, "--yes").out == f"{run}: stopped (stopped)\n"
            assert theirs.wait(10) == -signal.SIGTERM
        steps = log.read_text().count("\n")
        assert dflash("query", "select count(*), max(step) from steps").out.split()[1] == f"{steps},{steps - 1}"
        assert "nobody here knows how to start it again" in refused(dflash("resume", run), 1)
    finally:
        if theirs.poll() is None:
            os.kill(theirs.pid, signal.SIGKILL)
            theirs.wait()


def test_what_is_no_log_is_refused_and_leaves_no_run(tmp_path: Path) -> None:
    assert "there is no" in refused(dflash("attach", "--log", str(tmp_path / "none")), 1)
    state = tmp_path / "trainer_state.json"
    state.write_text('{"log_history": [\n {"step": 1}]}')
    assert "a JSON document" in refused(dflash("attach", "--log", str(state)), 2)
    assert dflash("runs", "--json").json() == []
    assert on_terminal("attach", "--help").code == 0

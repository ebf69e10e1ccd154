"""`launch-script`: a trainer of one's own, from the command line to the tables, with its secrets nowhere but there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import dflash, from_scratch, refused, wait_until, watching

PRINTS = """
import os, sys, time
print("Loading the model")
first = 1 if os.environ["DFLASH_ATTEMPT"] == "1" else 4
for step in range(first, 6):
    print({"step": step, "loss": 1.0 / step, "note": sys.argv[1]})
    while step == 3 and not os.path.exists("go"):
        time.sleep(0.02)
print("the key has", len(os.environ["MY_API_KEY"]), "letters")
"""
LOGS = """
import sys, time
print("loss 1 at step 99")
with open(sys.argv[1], "a") as log:
    for step in range(1, 4):
        print('{"step": %d, "loss": NaN}' % step, file=log)
"""


@pytest.fixture(autouse=True)
def nobody_is_left(home: Path) -> Iterator[None]:
    yield
    left = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_of(entry, str(home).encode())]
    for process in left:
        os.kill(int(process.name), signal.SIGKILL)
    assert not left


def _is_of(process: Path, home: bytes) -> bool:
    try:
        return b"DFLASH_RUN_ID=" in (words := (process / "environ").read_bytes()) and home in words
    except OSError:
        return False


def rows(sql: str) -> list[str]:
    return dflash("query", sql).out.splitlines()[1:]


def test_a_script_is_launched_followed_stopped_and_resumed(tmp_path: Path, home: Path) -> None:
    script, secrets = tmp_path / "train me.py", tmp_path / "my.env"
    script.write_text(PRINTS)
    secrets.write_text("MY_API_KEY=hunter22hunter22\n")
    words = ["launch-script", str(script), "--env-file", str(secrets), "--name", "Mine"]

    plan = dflash(*words, "--dry-run", "--", "a 'b'", "--token=t0psecret").json()
    assert plan["argv"][2:] == ["a 'b'", "--token=***"]
    assert (plan["env"], plan["log"], plan["push"][0]["there"]) == (["MY_API_KEY"], None, False)
    assert plan["push"][0]["bytes"] == len(PRINTS) and not (home / "data/dflash.duckdb").exists()

    said = from_scratch(*words, "--", "a 'b'", "--token=t0psecret")
    assert said.code == 0, said.err
    run = said.out.strip()
    with watching():
        wait_until(lambda: rows("select count(*) from steps") == ["3"])
        assert dflash("status", run, "--json").json()["state"] == "running"
        assert dflash("stop", run, "--yes").out == f"{run}: stopped (stopped)\n"
        said = dflash("resume", run)
        assert said.out in (f"{run}: {state}, attempt 2\n" for state in ("running", "finished")), said.err
        wait_until(lambda: dflash("status", run, "--json").json()["state"] == "finished")
    assert rows("select step, loss, extra->>'note', attempt, generation from steps order by step") == [
        "1,1.0,a 'b',1,1", "2,0.5,a 'b',1,1", "3,0.3333333333333333,a 'b',1,1", "4,0.25,a 'b',2,2", "5,0.2,a 'b',2,2",
    ]  # fmt: skip
    assert rows("select count(*) from rejects") == ["0"]
    assert "the key has 16 letters" in dflash("logs", run).out
    found = dflash("status", run, "--json").json()
    assert (found["kind"], found["attempt"], found["paths"]["log"][-21:]) == ("script", 2, "attempts/1/output.log")
    for path in home.rglob("*"):
        if path.is_file() and "work" not in path.parts:
            data = path.read_bytes()
            assert b"hunter22" not in data and b"t0psecret" not in data, path
    # A rebuild reads the same from the mirrors.
    before = rows("select * exclude (time) from records order by all")
    assert dflash("doctor", "--rebuild").code == 0
    assert rows("select * exclude (time) from records order by all") == before


@pytest.mark.parametrize("named", [True, False])
def test_a_log_file_is_read_instead_of_what_is_printed(tmp_path: Path, named: bool) -> None:
    script = tmp_path / "logs.py"
    script.write_text(LOGS)
    log = "deep.log" if named else "train_log.jsonl"
    said = dflash("launch-script", str(script), "--follow", *(["--log", log] if named else []), "--", log)
    assert said.code == 0, said.err
    assert "finished (completed) · step 3" in said.err
    assert rows("select step, loss from records order by line_no") == ["1,NaN", "2,NaN", "3,NaN"]
    assert rows("select count(*) from rejects") == ["0"]


def test_a_script_that_fails_and_refusals(tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text("raise SystemExit('no data in /nowhere')")
    said = dflash("launch-script", str(script), "--follow")
    assert said.code == 1 and "ended at once (error, exit code 1): no data in /nowhere" in said.err
    [run] = dflash("runs", "--json").json()
    assert (run["state"], run["kind"], run["name"]) == ("failed", "script", "bad")
    assert "no such option" in refused(dflash("launch-script", str(script), "--lr=1"), 2).lower()
    assert "--gpus 0,0" in refused(dflash("launch-script", str(script), "--gpus", "0,0"), 2)
    assert "cannot be read" in refused(dflash("launch-script", str(tmp_path / "none.py")), 2)
    (tmp_path / "what").write_text("x")
    assert "what runs it?" in refused(dflash("launch-script", str(tmp_path / "what")), 2)

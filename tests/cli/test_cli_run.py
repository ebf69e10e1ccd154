"""One real run, end to end by commands: the bundled trainer, detached, on this machine, and all that may befall it."""

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import SMALL_RUN, dflash, from_scratch, refused, wait_until, watching

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]

SMALL = [word for setting in SMALL_RUN for word in ("--set", setting)]


def status(run: str) -> Any:
    return dflash("status", run, "--json").json()


def count(sql: str) -> int:
    return int(dflash("query", sql).out.splitlines()[1])


def test_a_run_is_launched_stopped_and_resumed_without_a_gap_or_a_double(home: Path) -> None:
    planned = dflash("launch", "tiny", "--gpus", "0,1", "--dry-run", *SMALL)
    assert planned.code == 0 and planned.json()["target"] == "tiny"
    assert "-m trainer" in planned.err and "/dflash-runs/RUN/attempts/1/config.json" in planned.err
    assert "with: CUDA_VISIBLE_DEVICES\n" in planned.err and not list(home.rglob("run.json"))
    assert "each once" in refused(dflash("launch", "tiny", "--gpus", "0,0", "--dry-run"), 2)
    started = time.monotonic()
    said = from_scratch("launch", "tiny", "--name", "Mine", "--set", "total_steps=100000", *SMALL)
    assert said.code == 0, said.err
    assert time.monotonic() - started < 10
    run_id = said.out.strip()
    assert status(run_id)["state"] == "running"
    assert "running" in refused(dflash("resume", run_id), 1)
    assert "--yes" in refused(dflash("stop", run_id), 2)

    with watching() as owner:
        wait_until(lambda: count("select count(*) from steps") > 3)
        first = count("select count(*) from steps")
        wait_until(lambda: count("select count(*) from steps") > first)
        # The owner dies by the hardest way; the trainer goes on, and another takes over.
        owner.send_signal(signal.SIGKILL)
        owner.wait()

    said = from_scratch("stop", run_id, "--yes")
    assert (said.code, said.out) == (0, f"{run_id}: stopped (stopped)\n"), said.err
    found = status(run_id)
    assert (found["state"], found["reason"], found["code"], found["pid"]) == ("stopped", "stopped", 75, None)
    stopped_at = found["checkpoint"]["step"]
    assert stopped_at == found["step"] and Path(found["checkpoint"]["path"]).is_dir()

    said = from_scratch("resume", "Mine")
    assert said.code == 0 and "attempt 2" in said.out, said.err
    with watching():
        wait_until(lambda: count("select max(step) from steps") > stopped_at + 3)
    assert dflash("stop", run_id, "--kill", "--yes").code == 0
    found = status(run_id)
    assert (found["state"], found["reason"], found["attempt"]) == ("stopped", "stopped", 2)
    assert found["attempts"][1]["first_step"] == stopped_at + 1
    steps = "select count(*) = max(step) and count(distinct step) = max(step) from steps"
    assert dflash("query", steps).out.splitlines()[1] == "true"

    far = Path(found["paths"]["log"]).read_bytes()
    mirror = Path(found["paths"]["mirror"], "train_log.jsonl").read_bytes()
    assert hashlib.sha256(mirror).digest() == hashlib.sha256(far).digest()
    assert dflash("logs", run_id).out.count("step") > 0
    assert '"step":1,' in dflash("logs", run_id, "--metrics", "--since-step", "1").out.splitlines()[0].replace(" ", "")

    # The database is an index: without it, the mirrors make it again, with names, hosts and states.
    before = dflash("runs", "--json").json()
    rows = count("select count(*) from records")
    for file in (home / "data").glob("dflash.duckdb*"):
        file.unlink()
    again = dflash("runs", "--json")
    assert "mirrors" in again.err
    keep = ("run_id", "name", "kind", "host", "state", "reason", "code", "attempt", "step", "total_steps")
    assert [{k: run[k] for k in keep} for run in again.json()] == [{k: run[k] for k in keep} for run in before]
    assert count("select count(*) from records") == rows


def test_a_run_that_is_followed_ends_with_its_report() -> None:
    said = dflash("launch", "tiny", "--follow", "--set", "total_steps=4", "--set", "lr=0.0007", *SMALL)
    assert said.code == 0, said.err
    assert "finished (completed)" in said.err.splitlines()[-1]
    panels = dflash("report", said.out.strip(), "--json").json()["panels"]
    assert panels["acceptance"]["state"] == "rows"
    assert len([row for row in panels["vitals"]["rows"] if row[2] is not None]) > 5
    first = said.out.strip()
    assert "has finished" in refused(dflash("resume", first), 1)
    planned = dflash("clone", first, "--set", "total_steps=2", "--dry-run")
    assert planned.code == 0 and planned.json()["total_steps"] == 2 and "-m trainer" in planned.err
    said = from_scratch("clone", first, "--set", "total_steps=2", "--follow")
    assert said.code == 0, said.err
    compared = "select parent, config->>'$.total_steps', config->>'$.lr' from runs order by created"
    assert dflash("query", compared).out.splitlines()[1:] == [",4,0.0007", f"{first},2,0.0007"]
    assert "takes no words" in refused(dflash("clone", first, "--", "x"), 2)
    assert "unknown key 'lrr'" in refused(dflash("clone", first, "--set", "lrr=1"), 2)


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew_and_says_so() -> None:
    run_id = dflash("launch", "tiny", "--set", "total_steps=100000", *SMALL).out.strip()
    assert f" {status(run_id)['pid']}\n" in dflash("status", run_id).out.replace("  ", " ")
    assert dflash("stop", run_id, "--kill", "--yes").code == 0
    said = dflash("resume", run_id)
    assert (said.code, said.out) == (0, f"{run_id}: running, attempt 2\n"), said.err
    assert said.err.endswith("had saved no checkpoint: it begins at its first step, with what was prepared\n")
    assert dflash("stop", run_id, "--kill", "--yes").code == 0


def test_an_interpreter_without_torch_starts_nothing(home: Path) -> None:
    bare = home / "bare"
    bare.mkdir(parents=True)
    python = bare / "python"
    python.write_text('#!/bin/sh\nexec /usr/bin/env python3 -I -S "$@"\n')
    python.chmod(0o755)
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(f"[hosts.local]\npython = {str(python)!r}\n")
    line = refused(dflash("launch", "tiny"), 1)
    assert "no torch" in line and str(python) in line and "pip install" in line
    assert dflash("runs", "--json").json() == []
    (home / "config" / "config.toml").write_text("[hosts.local]\npython = '/nowhere/python'\n")
    assert "/nowhere/python" in refused(dflash("launch", "tiny"), 1)
    assert not list((home / "data" / "work").rglob("run.json"))


def test_what_a_recipe_names_is_asked_for_before_anything_starts() -> None:
    """The bundled recipes for real targets hold paths of an example."""
    for words in (["--dry-run"], []):
        line = refused(dflash("launch", "paper", *words), 2)
        assert "local has no /models/Qwen3-4B/config.json (target)" in line and "--set target=..." in line
    assert dflash("runs", "--json").json() == []


def test_a_trainer_that_fails_says_why_and_in_which_state(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "prompts.jsonl").write_text("")
    said = dflash("launch", "tiny", "--follow", "--set", f"target={tmp_path}", *SMALL)
    assert said.code == 1
    assert str(tmp_path) in said.err
    [run] = dflash("runs", "--json").json()
    assert (run["state"], run["reason"]) in {("failed", "error"), ("failed", "environment")}
    assert "Traceback" not in said.err


@pytest.fixture(autouse=True)
def no_trainer_is_left() -> Any:
    yield
    left = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_of_this_test(entry)]
    for process in left:
        os.kill(int(process.name), signal.SIGKILL)
    assert not left


def _is_of_this_test(process: Path) -> bool:
    try:
        words = (process / "environ").read_bytes()
    except OSError:
        return False
    return b"DFLASH_RUN_ID=" in words and os.environ["DFLASH_TUI_HOME"].encode() in words

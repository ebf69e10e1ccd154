"""`clone` and `forget`: a run like another one, and a run that nobody wants to see any more."""

from pathlib import Path

from .conftest import dflash, from_scratch, on_terminal, refused, watching

SCRIPT = "import os, sys\nprint({'step': int(sys.argv[1]), 'loss': 1.0, 'note': os.environ.get('MY_KEY')})\n"


def test_a_script_is_cloned_with_other_words_and_forgotten(tmp_path: Path, home: Path) -> None:
    script, env = tmp_path / "one.py", tmp_path / ".env"
    script.write_text(SCRIPT)
    env.write_text("MY_KEY=k1\n")
    first = dflash("launch-script", str(script), "--env-file", str(env), "--follow", "--", "1").out.strip()
    # The file here may be another one by now: what ran there is what is cloned.
    script.write_text("raise SystemExit('not this')")
    # What it would do, and it does nothing; nor does that need a seat.
    with watching():
        planned = dflash("clone", first, "--gpus", "0", "--dry-run", "--", "--token", "t", "2")
    assert planned.code == 0, planned.err
    plan = planned.json()
    assert plan["argv"][2:] == ["--token", "***", "2"] and plan["argv"][1] == plan["push"][0]["path"]
    assert set(plan["env"]) >= {"MY_KEY", "CUDA_VISIBLE_DEVICES"} and plan["host"] == "local"
    assert (plan["push"][0]["file"], plan["push"][0]["there"]) == (f"{first}'s one.py", True)
    assert "no settings" in refused(dflash("clone", first, "--set", "lr=1", "--dry-run"), 2)
    assert [run["run_id"] for run in dflash("runs", "--json").json()] == [first]
    same = dflash("clone", first, "--follow")
    assert same.code == 0, same.err
    env.write_text("MY_KEY=k2\n")
    said = dflash("clone", "one", "--name", "Two", "--env-file", str(env), "--follow", "--", "2")
    assert said.code == 0, said.err
    second = said.out.strip()
    rows = dflash("query", "select run, step, extra->>'note' from steps order by run, step").out.splitlines()[1:]
    assert sorted(rows) == sorted([f"{first},1,k1", f"{same.out.strip()},1,k1", f"{second},2,k2"])
    parents = dflash("query", "select run, parent from runs where parent is not null order by created").out.split()[1:]
    assert parents == [f"{same.out.strip()},{first}", f"{second},{same.out.strip()}"]
    assert "no settings" in refused(dflash("clone", second, "--set", "lr=1"), 2)

    assert "add --yes" in refused(dflash("forget", second), 2)
    with watching():
        said = from_scratch("forget", "Two", "--yes")
        assert (said.code, said.out) == (0, f"{second}: forgotten here; local still has it\n"), said.err
        assert second not in dflash("runs", "--json").out
    assert not (home / "data/mirrors" / second).exists()
    assert (home / "data/work/dflash-runs" / second).is_dir()
    assert "there is no run" in refused(dflash("forget", second, "--yes"), 2)
    assert dflash("hosts", "scan").out == f"{second}\n"
    assert dflash("query", f"select count(*) from steps where run = '{second}'").out.split()[1] == "1"


def test_what_was_not_started_from_here_has_no_clone_and_a_living_run_is_told(tmp_path: Path) -> None:
    log = tmp_path / "mine.jsonl"
    log.write_text('{"step": 1, "loss": 2}\n')
    assert dflash("ingest", str(log)).code == 0
    assert "cannot be cloned" in refused(dflash("clone", "mine"), 2)
    assert "cannot be cloned" in refused(dflash("clone", "mine", "--dry-run"), 2)
    script = tmp_path / "long.sh"
    script.write_text("echo on; sleep 600\n")
    run = dflash("launch-script", str(script)).out.strip()
    try:
        asked = refused(dflash("forget", run), 2)
        assert "It goes on, on local, where `hosts scan` finds it again" in asked
        assert on_terminal("forget", run, streams=()).code == 2
    finally:
        assert dflash("stop", run, "--kill", "--yes").code == 0
    assert dflash("forget", "mine", "--yes").out == "mine: forgotten here\n"
    assert [run["kind"] for run in dflash("runs", "--json").json()] == ["script"]

"""`ingest` as a person types it: parts by a shell's star, a shape by its name, and what is said of bad input."""

import gzip
from pathlib import Path

import pytest

from .conftest import dflash, refused


def test_parts_of_a_log_come_in_any_order_and_once(home: Path, tmp_path: Path) -> None:
    packed, live = tmp_path / "train.jsonl.1.gz", tmp_path / "train.jsonl"
    packed.write_bytes(gzip.compress(b'{"step": 1, "loss": 3}\n{"step": 2, "loss": 2}\n'))
    live.write_text('{"step": 3, "loss": 1}\n{"step": 4, "lo{\n{"step": 5, "loss": 1}\n')
    said = dflash("ingest", str(live), str(packed))
    assert said.code == 0
    assert said.out == (
        "train: 2 rows, 0 rejected, 1 attempt, last step 2\ntrain: 2 rows, 1 rejected, 1 attempt, last step 5\n"
    )
    assert said.err.startswith(f"{live}:2: not JSON: ")
    again = dflash("ingest", str(packed), "--run", "train")
    assert (again.code, again.out, again.err) == (0, "train: 0 rows, 0 rejected, 1 attempt, last step 5\n", "")


def test_a_shape_is_named(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    log.write_text('{"hello": "world"\nstep: 3  loss: 2.5\n')
    assert "did you mean 'text'?" in refused(dflash("ingest", str(log), "--as", "txt"), 2)
    assert dflash("ingest", str(log), "--as", "text").out == "out: 1 row, 0 rejected, 1 attempt, last step 3\n"
    line = refused(dflash("ingest", str(log), "--as", "jsonl"), 2)
    assert line.endswith("is a log of shape jsonl, and its run holds one of text; choose another --run")


def test_a_run_is_named_where_two_logs_have_one_name(home: Path, tmp_path: Path) -> None:
    files = [tmp_path / name / "log.jsonl" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text('{"step": 1}\n')
    assert "would both be the run log: ingest each with its --run" in refused(dflash("ingest", *map(str, files)), 2)


def test_a_place_where_no_database_can_lie_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(tmp_path / "what?"))
    for words in (("runs",), ("ingest", str(tmp_path / "none.jsonl")), ("query", "select 1")):
        line = refused(dflash(*words), 2)
        assert line.endswith("a database cannot lie where a name has a '?'; set DFLASH_TUI_HOME to another folder")

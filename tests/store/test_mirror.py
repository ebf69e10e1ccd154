"""The byte-exact copy: what a crash, a torn line, a rotation or a bad name do to it."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import Cursor, RunEvent, RunRecord
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, mirrored_runs


def sha(data: bytes) -> str:
    return hashlib.sha1(data[-64:]).hexdigest()[:16] if data else ""


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.binary(min_size=1, max_size=90), max_size=6))
def test_the_cursor_is_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, parts: list[bytes]
) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(tmp_path_factory.mktemp("m")))
    mirror, whole = Mirror("run-1"), b""
    assert mirror.cursor(TRAIN_LOG) == Cursor()
    for part in parts:
        whole += part
        mirror.append(TRAIN_LOG, part, Cursor(len(whole), 99, sha(whole)))
        assert Mirror("run-1").cursor(TRAIN_LOG) == Cursor(len(whole), 99, sha(whole))
    assert b"".join(parts) == (mirror.path(TRAIN_LOG).read_bytes() if parts else b"")


def test_bytes_that_do_not_fit_are_refused() -> None:
    mirror = Mirror("r")
    mirror.append(TRAIN_LOG, b"abc", Cursor(3, 1, ""))
    with pytest.raises(DflashError, match="holds 3 bytes, so 2 more cannot end at 9"):
        mirror.append(TRAIN_LOG, b"de", Cursor(9, 1, ""))
    assert mirror.path(TRAIN_LOG).read_bytes() == b"abc"


def test_a_new_generation_keeps_the_old_one() -> None:
    mirror = Mirror("r")
    assert mirror.start_generation(TRAIN_LOG, "rotated") == 1
    for number, data in enumerate((b"one", b"two", b"three"), start=1):
        mirror.append(TRAIN_LOG, data, Cursor(len(data), number, ""))
        assert mirror.generation(TRAIN_LOG) == number
        assert mirror.start_generation(TRAIN_LOG, "rotated") == number + 1
        assert mirror.cursor(TRAIN_LOG) == Cursor()
    assert [(n, file.name, file.read_bytes()) for n, file in mirror.older(TRAIN_LOG)] == [
        (1, "train_log.1.jsonl", b"one"),
        (2, "train_log.2.jsonl", b"two"),
        (3, "train_log.3.jsonl", b"three"),
    ]
    assert mirror.path(TRAIN_LOG, 2).read_bytes() == b"two"
    assert next(event.text for event in mirror.events()) == "train_log.jsonl was rotated: generation 2 begins"


def test_outputs_of_attempts_are_streams_too() -> None:
    mirror = Mirror("r")
    mirror.append("attempts/12/output.log", b"hello", Cursor(5, 1, ""))
    assert mirror.path("attempts/12/output.log").read_bytes() == b"hello"
    for name in ("attempts/0/output.log", "attempts/1/../../x", "run.json", "/etc/passwd", "train_log.1.jsonl"):
        with pytest.raises(UsageError, match="no stream of a run"):
            mirror.append(name, b"x", Cursor(1, 1, ""))


def test_records_and_events_come_back() -> None:
    mirror = Mirror("r")
    assert mirror.read_record() is None
    record = RunRecord(
        "r", "my run", "train", "box", "/w/r", "/w/r/log", 12.5, "p", "abc", {"lr": 6e-4, "noise": {"std": 0.1}}
    )
    mirror.write_record(record)
    assert Mirror("r").read_record() == record
    events = [RunEvent(1.0, "state", "running", attempt=1, pid=7), RunEvent(2.0, "note", text="hä\n")]
    for event in events:
        mirror.append_event(event)
    assert list(Mirror("r").events()) == events
    assert mirrored_runs() == ["r"]


def test_a_torn_event_swallows_no_other() -> None:
    mirror = Mirror("r")
    mirror.append_event(RunEvent(1.0, "note", text="a"))
    with (mirror.folder / "events.jsonl").open("ab") as file:
        file.write(b'{"time": 2.0, "ki')
    mirror.append_event(RunEvent(3.0, "note", text="b"))
    assert [event.text for event in mirror.events()] == ["a", "b"]


def test_a_broken_record_is_named() -> None:
    mirror = Mirror("r")
    mirror.write_record(RunRecord("r", "r", "train"))
    (mirror.folder / "run.json").write_text("{")
    with pytest.raises(DflashError, match=r"run\.json: is no record of a run"):
        mirror.read_record()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "A", "-x", "x" * 65, "a\n"])
def test_only_a_run_id_names_a_folder(home: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a run"):
        Mirror(name)
    assert not home.exists()


def test_folders_that_are_no_runs_are_passed_over() -> None:
    Mirror("r").write_record(RunRecord("r", "r", "train"))
    (paths.mirrors_dir() / "Not A Run").mkdir()
    (paths.mirrors_dir() / "file").write_text("")
    assert mirrored_runs() == ["r"]
    assert paths.mirrors_dir().stat().st_mode & 0o777 == 0o700

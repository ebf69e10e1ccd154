"""From how a trainer ended to one of the closed list of states and reasons."""

from pathlib import Path
from typing import Any

import pytest

from dflash_tui.remote.agent.verdict import last_words, logged_end, verdict

STOPPED = {"stop_seen": 1.0}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"code": 0}, "finished(completed)"),
        ({"code": 0, **STOPPED}, "finished(completed)"),
        ({"code": 75}, "interrupted(saved)"),
        ({"code": 75, **STOPPED}, "stopped(stopped)"),
        ({"signal": 15, **STOPPED}, "stopped(stopped)"),
        ({"code": 143, "signal": 15, **STOPPED}, "stopped(stopped)"),
        ({"signal": 9, **STOPPED, "killed": True}, "stopped(killed-after-grace)"),
        ({"signal": 9, **STOPPED, "killed": True, "had_grace": False}, "stopped(stopped)"),
        ({"signal": 15, **STOPPED, "log_code": 0}, "finished(completed)"),
        ({"signal": 15, "log_code": 0}, "finished(completed)"),
        ({"signal": 15, "log_code": 75}, "interrupted(saved)"),
        ({"signal": 11, "log_code": 0}, "failed(signal)"),
        ({"signal": 15}, "failed(signal)"),
        ({**STOPPED}, "stopped(stopped)"),
        ({"code": 1, **STOPPED}, "failed(error)"),
        ({"signal": 11, **STOPPED}, "failed(signal)"),
        ({"signal": 9, "oom_kills": 1, **STOPPED}, "failed(oom-host-likely)"),
        ({"code": 1}, "failed(error)"),
        ({"signal": 11}, "failed(signal)"),
        ({"signal": 9, "oom_kills": 1}, "failed(oom-host-likely)"),
        ({"code": 1, "oom_kills": 2}, "failed(oom-host-likely)"),
        ({"code": 137, "signal": 9, "oom_kills": 0}, "failed(signal)"),
        ({"code": 1, "log_reason": "nan"}, "failed(nan)"),
        ({"code": 1, "log_reason": "disk-full", "said": "RuntimeError: x"}, "failed(disk-full)"),
        ({"code": 1, "disk_full": True}, "failed(disk-full)"),
        ({"code": 1, "disk_full": True, "said": "ImportError: x"}, "failed(environment)"),
        ({"code": 0, "disk_full": True}, "finished(completed)"),
        ({"code": 1, "log_reason": "oom", "said": "out of memory (CUDA out of memory)"}, "failed(oom-gpu)"),
        ({"code": 1, "log_reason": "oom", "said": "out of memory (bad alloc)"}, "failed(oom-host-likely)"),
        ({"code": 1, "log_reason": "bogus\x1b[31m"}, "failed(error)"),
        ({"code": 127}, "failed(environment)"),
        ({"code": 1, "said": "ModuleNotFoundError: No module named 'torch'"}, "failed(environment)"),
        ({"code": 1, "said": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"}, "failed(oom-gpu)"),
        ({"code": 1, "said": "OSError: [Errno 28] No space left on device"}, "failed(disk-full)"),
    ],
)
def test_verdicts(facts: dict[str, Any], expected: str) -> None:
    state, reason = verdict(facts)
    assert f"{state}({reason})" == expected


def test_last_words_are_the_last_line_with_words(tmp_path: Path) -> None:
    file = tmp_path / "output.log"
    assert last_words(str(file)) == ""
    file.write_bytes(b"first\n" * 100_000 + b"  Error: \xff no\r\n\n  \n")
    assert last_words(str(file)) == "Error: \N{REPLACEMENT CHARACTER} no"
    file.write_bytes(b"x" * 1_000_000)
    assert len(last_words(str(file))) == 200


def test_only_an_end_of_this_attempt_counts(tmp_path: Path) -> None:
    file = tmp_path / "log"
    first = b'{"event": "end", "reason": "nan", "exit_code": 1}\n'
    file.write_bytes(first + b'{"step": 1, "note": "end"}\n{"event": "end", broken\n')
    assert logged_end(str(file), 0) == ("nan", 1)
    assert logged_end(str(file), len(first)) == (None, None)


@pytest.mark.parametrize(
    "line",
    ['{"event": "end", "reason": 7, "exit_code": "0"}', '["end"]', "[" * 30_000 + '"end"'],
    ids=["wrong types", "no object", "too deep"],
)
def test_an_end_of_the_wrong_shape_says_nothing(tmp_path: Path, line: str) -> None:
    file = tmp_path / "log"
    file.write_text(line + "\n")
    assert logged_end(str(file), 0) == (None, None)

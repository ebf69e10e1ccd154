"""The thorough look at a machine: each fact that stands against training is a sentence with what to do about it."""

import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError
from dflash_tui.remote.agent import machine, mounts
from dflash_tui.remote.check import Finding, check, found_in
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.machine import read_overview

from .conftest import Start

FACTS: dict[str, Any] = {
    "now": 1000.0,
    "uid": 0,
    "user": "root",
    "shell": "/bin/bash",
    "interpreter": {
        "why": None,
        "python": "3.11.7",
        "executable": "/venv/bin/python",
        "packages": {"torch": "2.13", "transformers": "5", "safetensors": "1"},
    },
    "torch": {"why": None, "version": "2.13", "cuda": "13.0", "devices": 2, "error": None},
    "disk": {
        "free_bytes": 500 << 30,
        "free_files": 10**6,
        "is_read_only": False,
        "is_noexec": False,
        "kind": "ext4",
        "why_not_written": None,
    },
    "lock": {"works": True, "why": None},
    "memory": {"total_bytes": 256 << 30, "available_bytes": 200 << 30},
    "load": 1.5,
    "cpus": 32,
    "kill_user_processes": None,
    "has_pct": False,
    "runs": [],
    "living": [],
    "disk_free_bytes": 500 << 30,
    "gpus": None,
    "why": "no nvidia-smi here",
}
SPEC = HostSpec(kind="ssh", name="box", address="box", python="/venv/bin/python")


def findings(now: float = 1000.0, known: frozenset[str] = frozenset(), **changes: Any) -> list[Finding]:
    """What is said of a machine like FACTS; a change is a dotted name with `__` for the dot."""
    facts = deepcopy(FACTS)
    for name, value in changes.items():
        *path, last = name.split("__")
        table = facts
        for key in path:
            table = table[key]
        table[last] = value
    view = read_overview("box", facts, now, 999.99, 1000.01)
    return list(found_in(SPEC, "/root", facts, view, "3.11.7", known))


def test_a_machine_that_is_well() -> None:
    assert {one.severity for one in findings()} <= {"ok", "info"}
    assert "answers in 20 ms, as user root" in findings()[0].sentence


@pytest.mark.parametrize(
    ("what", "severity", "words", "changes"),
    [
        ("python", "critical", "there is no python at /x", {"interpreter__why": "there is no python at /x"}),
        ("python", "critical", "Python 3.6.9: the trainer needs 3.10 or newer", {"interpreter__python": "3.6.9"}),
        ("torch", "critical", "/venv/bin/python -m pip install torch there", {"interpreter__packages__torch": None}),
        ("torch", "critical", "torch cannot be imported (libc", {"torch__why": "libcudart.so: no such file"}),
        ("torch", "info", "built without CUDA", {"torch__cuda": None}),
        ("torch", "warning", "sees no GPU: is there a driver", {"torch__devices": 0}),
        ("torch", "warning", "finds no GPU (Error 804", {"torch__error": "Error 804: forward compatibility"}),
        ("gpu", "info", "no GPU info: no nvidia-smi here", {}),
        ("disk", "critical", "mounted read-only", {"disk__is_read_only": True}),
        (
            "disk",
            "critical",
            "cannot be written (the disk is full",
            {"disk__why_not_written": "the disk is full: free"},
        ),
        ("disk", "critical", "too little for any run", {"disk__free_bytes": 1 << 20}),
        ("disk", "critical", "but no inode", {"disk__free_files": 0}),
        ("disk", "warning", "checkpoints fill that", {"disk__free_bytes": 5 << 30}),
        ("disk", "ok", "mounted noexec, which does not matter", {"disk__is_noexec": True}),
        ("lock", "critical", "takes no lock (not supported)", {"lock": {"works": False, "why": "not supported"}}),
        ("lock", "warning", "is on nfs4: a workdir on a local disk is safer", {"disk__kind": "nfs4"}),
        ("memory", "warning", "0.5 GiB of 256.0 GiB available", {"memory__available_bytes": 1 << 29}),
        ("memory", "info", "cannot be known", {"memory__available_bytes": None}),
        ("clock", "warning", "3,600 s ahead of ours", {"now": 4600.0}),
        ("clock", "warning", "100 s behind ours", {"now": 900.0}),
        ("logout", "critical", "enable-linger", {"kill_user_processes": True}),
        ("logout", "ok", "outlives a logout", {"kill_user_processes": False}),
        ("pct", "info", "this is a Proxmox node", {"has_pct": True}),
        ("runs", "info", "not known here yet: a, b, c and 1 more; `dflash-tui hosts scan box`", {"runs": [*"dcba"]}),
        ("runs", "ok", "1 run now, of 2 in", {"runs": ["a", "b"], "living": ["a"], "known": frozenset("ab")}),
    ],
)
def test_what_stands_against_it(what: str, severity: str, words: str, changes: dict[str, Any]) -> None:
    found = [one for one in findings(**changes) if one.what == what]
    assert [(one.severity, words in one.sentence) for one in found] == [(severity, True)], found


async def test_this_machine(agent: AgentClient, start: Start, tmp_path: Path) -> None:
    await start()
    found = {one.what: one for one in await check(agent)}
    assert not [one for one in found.values() if one.severity == "critical"]
    assert f"{sys.executable} is Python" in found["python"].sentence
    assert "torch 2" in found["torch"].sentence
    assert "toy-1" in found["runs"].sentence
    assert "locks work there" in found["lock"].sentence
    assert not [path for path in Path(agent.workdir, "dflash-runs").iterdir() if path.name != "toy-1"]


async def test_facts_that_cannot_be_read_are_no_findings(agent: AgentClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lie(op: str, **words: Any) -> dict[str, Any]:
        return {"python": "3.11", "now": 1.0} if op == "hello" else {**FACTS, "disk": [], "runs": "x"}

    monkeypatch.setattr(agent, "do", lie)
    with pytest.raises(HostError, match="tells of itself what cannot be read"):
        await check(agent)


def test_the_file_system_of_a_path() -> None:
    assert mounts.file_system("/proc/self") == "proc"
    assert mounts.file_system("/") not in (None, "proc")
    assert mounts.file_system("/nowhere") is None


@pytest.mark.skipif(os.getuid() != 0, reason="mounts something: run as root")
def test_the_file_system_of_a_path_that_is_hard_to_name(tmp_path: Path) -> None:
    """One with a line's end in it, and one below a mount that another one hides."""
    program = "import sys; from dflash_tui.remote.agent import mounts; print(*map(mounts.file_system, sys.argv[1:]))"
    script = """
        mkdir -p "$1" "$2/sys" && mount -t proc proc "$1" &&
        mount -t tmpfs tmpfs "$2/sys" && mount -t proc proc "$2" && shift 2 && exec "$@"
    """
    odd, hidden = tmp_path / "two\nlines", tmp_path / "below"
    argv = [sys.executable, "-c", program, odd / "sys", hidden / "sys"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "sh", odd, hidden, *argv], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("proc proc\n", "")


def test_logind_is_asked_only_where_it_may_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine._kills_user_processes() is None
    monkeypatch.setattr(machine.os, "getuid", lambda: 1000)
    monkeypatch.setattr(machine.os.path, "isdir", lambda path: True)
    for says, lingers, expected in (("b true", "no", True), ("b true", "yes", False), ("b false", "no", False)):
        said = {"busctl": says, "loginctl": lingers}
        monkeypatch.setattr(machine, "_said", lambda argv, said=said: said[argv[0]])
        assert machine._kills_user_processes() is expected
    monkeypatch.setattr(machine, "_said", lambda argv: None)
    assert machine._kills_user_processes() is None

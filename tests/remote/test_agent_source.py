"""What holds for the agent's source: it runs on Python 3.8 with the standard library alone, and never runs here."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dflash_tui
from dflash_tui.remote.bundle import agent_file, pack

from .far_side import assert_nobody_lives_below

ROOT = Path(dflash_tui.__file__).parent
AGENT = ROOT / "remote" / "agent"
SOURCES = sorted(AGENT.glob("*.py"))


@pytest.mark.parametrize("file", SOURCES, ids=lambda p: p.name)
def test_it_is_python_3_8_and_imports_the_standard_library_alone(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1, "the agent is all there is on the far side"
            continue
        else:
            continue
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"__future__"}


def test_the_program_that_boots_it_is_readable_by_any_python() -> None:
    tree = ast.parse((ROOT / "remote" / "boot.py").read_text(), feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr))]


def test_nothing_on_this_side_imports_it() -> None:
    for file in ROOT.rglob("*.py"):
        if AGENT not in file.parents:
            assert not re.search(r"(?m)^\s*(from|import)\s.*\b(agent|boot)\b", file.read_text()), file


def test_no_command_line_is_built_from_text() -> None:
    for folder in ("hosts", "remote"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text()
            assert "shell=True" not in text
            assert not re.search(r"os\.system|os\.popen|create_subprocess_shell|\.run\(\s*f?\"", text), file


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    first = agent_file()
    agent_file.cache_clear()
    assert agent_file() == first
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.py").write_text("1")
    (tmp_path / "b" / "__pycache__").mkdir()
    (tmp_path / "b" / "__pycache__" / "x.pyc").write_bytes(b"compiled")
    (tmp_path / "b" / ".hidden").write_text("2")
    assert pack(tmp_path / "a", "trainer") == pack(tmp_path / "b", "trainer")
    (tmp_path / "b" / "x.py").write_text("2")
    assert pack(tmp_path / "a", "trainer").sha256 != pack(tmp_path / "b", "trainer").sha256


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.13"])
def test_it_supervises_on_other_pythons(version: str, tmp_path: Path) -> None:
    python = _python(version)
    file = tmp_path / "agent.pyz"
    file.write_bytes(agent_file())
    where = {"workdir": str(tmp_path / "w"), "run_id": "old-1"}

    def ask(op: str, **words: Any) -> dict[str, Any]:
        done = subprocess.run(
            [python, "-I", "-S", str(file), "serve"],
            input=json.dumps({"id": 1, "ops": [{"op": op, **where, **words}]}).encode() + b"\n",
            capture_output=True,
            timeout=20,
        )
        assert done.stderr == b""
        [result] = json.loads(done.stdout.splitlines()[-1])["results"]
        return dict(result)

    assert ask("hello")["python"].startswith(version + ".")
    started = ask("launch", attempt=1, record={}, spec={"argv": ["/bin/sleep", "60"]}, config={})
    assert (started["state"], started["already"]) == ("running", False)
    found = ask("stop", grace_s=0)
    while found["state"] == "stopping":
        found = ask("status")
    assert found["state"] == "stopped"
    assert_nobody_lives_below(tmp_path / "w")


def _python(version: str) -> str:
    """A Python of that version, on PATH or among pyenv's."""
    found = shutil.which(f"python{version}")
    places = [Path(found)] if found else []
    places += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for place in places:
        if subprocess.run([place, "-c", ""], capture_output=True).returncode == 0:
            return str(place)
    pytest.skip(f"no Python {version} here")

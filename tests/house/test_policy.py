"""The rules of the house that no linter knows: sizes, names, and what the wheel may hold."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(p for d in ("dflash_tui", "trainer") for p in (ROOT / d).rglob("*.py"))


@pytest.mark.parametrize("file", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_small_and_say_what_they_own(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module says what it owns"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or 0) - node.lineno + 1
            assert size <= 50, f"{node.name} has {size} lines"
        if isinstance(node, ast.ClassDef):
            assert not re.search(r"(Manager|Helper|Utils?|Handler)$", node.name)


def test_nothing_names_a_machine_or_a_registry() -> None:
    names = r"/work/(main|shared)|pypi\.org|files\.pythonhosted|\.library/"
    found = subprocess.run(
        ["git", "grep", "-nIE", names, "--", ".", ":!tests/house/*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert not found.stdout


def test_top_level_stays_as_the_owner_fixed_it() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    allowed = {
        "pyproject.toml", "dflash_tui", "trainer", "sql", "tests", "README.md", "Makefile", "LICENSE", "CHANGELOG.md",
        ".ci", ".gitignore", "constraints.txt",
    }  # fmt: skip
    assert {line.split("/")[0] for line in tracked.splitlines()} <= allowed

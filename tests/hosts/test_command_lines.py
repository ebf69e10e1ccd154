"""No command line is ever put together: programs are started from a list of words, and one place joins one, once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dflash_tui

PACKAGE = Path(dflash_tui.__file__).parent
SOURCES = sorted([*PACKAGE.glob("hosts/**/*.py"), *PACKAGE.glob("remote/**/*.py")])
STARTERS = {"run", "start", "exec", "execv", "execve", "execvp", "Popen", "call", "check_call", "check_output"}
JOINER = PACKAGE / "hosts/ssh/__init__.py"


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


@pytest.mark.parametrize("file", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_programs_are_started_from_words(file: Path) -> None:
    for name, call in calls(file):
        where = f"{file}:{call.lineno}"
        assert name not in ("system", "popen", "create_subprocess_shell", "subprocess_shell"), where
        assert not [word for word in call.keywords if word.arg == "shell"], where
        if name in STARTERS and call.args:
            assert not isinstance(call.args[0], (ast.JoinedStr, ast.BinOp, ast.Constant)), where


def test_words_are_joined_in_one_place() -> None:
    joins = [(file, call) for file in SOURCES for name, call in calls(file) if is_shlex(call)]
    assert [file for file, _ in joins] == [JOINER]
    assert joins[0][1].func.attr == "join"  # type: ignore[attr-defined]


def is_shlex(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "shlex"

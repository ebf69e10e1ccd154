"""No command line is ever put together: programs are started from a list of words, and one place joins one, once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dflash_tui

PACKAGE = Path(dflash_tui.__file__).parent
SOURCES = sorted([*PACKAGE.glob("hosts/**/*.py"), *PACKAGE.glob("remote/**/*.py")])
STARTERS = {"run", "start", "exec", "execv", "execve", "execvp", "Popen", "call", "check_call", "check_output"}
STARTERS |= {"create_subprocess_exec", "subprocess_exec", "create_session", "create_process", "posix_spawn"}
SHELLS = {"system", "popen", "create_subprocess_shell", "subprocess_shell", "getoutput", "getstatusoutput"}
JOINER = PACKAGE / "hosts/ssh/__init__.py"
# The one call that takes a line, which the joiner has made.
TAKES_A_LINE = PACKAGE / "hosts/ssh/pool.py"


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""), node


def is_text(node: ast.expr) -> bool:
    """Whether a value is text that was put together: f"", "" % x, "" + x, "".format(x), " ".join(x)."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "format" or (node.func.attr == "join" and not is_shlex(node))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and holds_text(node))


def holds_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    texts = [side for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
    return bool(texts) or any(is_text(side) for side in sides)


@pytest.mark.parametrize("file", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_programs_are_started_from_words(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert "shell=True" not in source.replace(" ", "")
    for scope in functions(ast.parse(source)):
        made = {name for name, value in assignments(scope) if is_text(value)}
        for name, call in calls(scope):
            where = f"{file}:{call.lineno}"
            assert name not in SHELLS, where
            assert not [word for word in call.keywords if word.arg == "shell"], where
            for given in call.args[:1] if name in STARTERS else []:
                assert not isinstance(given, ast.Constant) and not is_text(given), where
                assert not (isinstance(given, ast.Name) and given.id in made), where


def functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def assignments(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def test_words_are_joined_in_one_place() -> None:
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES}
    joins = [(file, call) for file, tree in trees.items() for _, call in calls(tree) if is_shlex(call)]
    assert [file for file, _ in joins] == [JOINER]
    assert joins[0][1].func.attr == "join"  # type: ignore[attr-defined]
    takers = [file for file, tree in trees.items() for name, _ in calls(tree) if name == "create_session"]
    assert takers == [TAKES_A_LINE]


def is_shlex(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "shlex"


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(f'rm {x}')",
        "subprocess.run('rm %s' % x)",
        "subprocess.run('rm ' + x)",
        "subprocess.run(' '.join(x))",
        "subprocess.run('rm {}'.format(x))",
        "subprocess.run('rm')",
        "subprocess.run(x, shell=True)",
        "os.system(x)",
        "line = f'rm {x}'\nhost.run(line)",
    ],
)
def test_the_test_sees_what_it_is_for(line: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(line)
    with pytest.raises(AssertionError):
        test_programs_are_started_from_words(file)

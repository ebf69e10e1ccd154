"""The trainer's own rules: what it imports, how large its files are, and that its recipes are ones."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trainer.config import check, schema

from .trainer_setup import ROOT

TRAINER = ROOT / "trainer"
MODULES = sorted(TRAINER.glob("*.py"))
ALLOWED = {"trainer", "torch", "transformers", "safetensors"}
# Read before torch is imported.
LIGHT = {"__init__.py", "__main__.py", "config.py", "errors.py", "launcher.py", "log.py"}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_torch_transformers_safetensors_and_the_standard_library(path):
    assert imported(path) - set(sys.stdlib_module_names) <= ALLOWED
    if path.name in LIGHT:
        assert imported(path) - set(sys.stdlib_module_names) <= {"trainer"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_files_and_functions_are_small(path):
    text = path.read_text()
    assert text.count("\n") < 250
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 50, f"{path.name}: {node.name}"


def test_every_key_of_a_config_is_read_somewhere_and_none_is_read_that_is_not_there():
    read = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
                if name in ("config", "_config", "checked"):
                    read.add(node.slice.value)
    assert read == set(schema())


@pytest.mark.parametrize("path", sorted((TRAINER / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_is_a_config(path):
    recipe = tomllib.loads(path.read_text())
    assert check({**recipe, "run_dir": "/somewhere"})["kind"] == {"prepare": "prepare", "evaluate": "evaluate"}.get(
        path.stem, "train"
    )


def test_the_trainer_is_python_3_10():
    for path in MODULES:
        ast.parse(path.read_text(), feature_version=(3, 10))


def test_a_run_needs_nothing_of_the_session():
    code = "import sys, trainer.train; print(json.dumps(sorted(m for m in sys.modules if m.startswith('dflash'))))"
    done = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert json.loads(done.stdout) == []

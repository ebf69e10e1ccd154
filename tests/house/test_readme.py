"""The README tells of everything there is: commands, panels, checks, recipes and their keys, tables, exit codes."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from dflash_tui import paths, recipes
from dflash_tui.commands.app import app
from dflash_tui.errors import ExitCode
from dflash_tui.runs import RunState

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", README, flags=re.S)))
SCHEMA = (ROOT / "sql" / "schema.sql").read_text(encoding="utf-8")


def named(word: str) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", words) for words in WORDS)


@pytest.mark.parametrize(
    "word",
    [
        *get_command(app).commands,  # type: ignore[attr-defined]
        # Those that are bundled: whoever runs the tests may have some of their own.
        *[file.stem for folder in ("panels", "checks") for file in (paths.bundled("sql") / folder).glob("*.sql")],
        *recipes.bundled_names(),
        *recipes.schema(),
        *re.findall(r"create (?:table|view) (\w+)", SCHEMA),
        *RunState,
    ],
)
def test_it_is_in_the_readme(word: str) -> None:
    assert named(word)


@pytest.mark.parametrize("code", ExitCode)
def test_an_exit_code_is_in_the_readme(code: ExitCode) -> None:
    assert re.search(rf"^\| {int(code)} \| ", README, re.M)


def test_the_changelog_knows_this_version() -> None:
    from dflash_tui import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

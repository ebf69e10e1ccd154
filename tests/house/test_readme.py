"""The README tells of everything there is: commands and their options, keys, panels, checks, recipes, tables,
log keys, config keys, states, exit codes."""

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from typer.main import get_command

from dflash_tui import paths, recipes, ui
from dflash_tui.commands.app import app
from dflash_tui.config import AlertsSpec, Config, HostSpec, PanelsSpec, StopSpec
from dflash_tui.errors import ExitCode
from dflash_tui.runs import RunState
from dflash_tui.store.shapes import SHAPES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", README, flags=re.S)))
SESSION = README[README.index("## The session") : README.index("## Commands")]
SCHEMA = (ROOT / "sql" / "schema.sql").read_text(encoding="utf-8")
COLUMNS = tomllib.loads((ROOT / "sql" / "columns.toml").read_text(encoding="utf-8"))
# How keys with a name of their own are written for people.
KEYS = {
    "up": "arrows", "down": "arrows", "left": "arrows", "right": "arrows", "escape": "Esc", "enter": "Enter",
    "slash": "/", "question_mark": "?", "tilde": "~", "ampersand": "&", "colon": ":", "plus": "+", "minus": "-",
    "equals_sign": "=", "left_square_bracket": "[", "right_square_bracket": "]", "full_stop": ".", "comma": ",",
}  # fmt: skip


def named(word: str) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", words) for words in WORDS)


def commands(tree: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in tree.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above}{name} ")
        else:
            yield above + name, command


def bindings() -> Iterator[tuple[str, Binding]]:
    """Every key that says what it does, with the class whose it is."""
    for module in pkgutil.iter_modules(ui.__path__):
        for thing in vars(importlib.import_module(f"dflash_tui.ui.{module.name}")).values():
            if isinstance(thing, type) and thing.__module__.startswith("dflash_tui.ui."):
                for binding in vars(thing).get("BINDINGS", ()):
                    if isinstance(binding, Binding) and binding.tooltip:
                        yield thing.__name__, binding


@pytest.mark.parametrize(
    "word",
    [
        *[name for name, _ in commands(get_command(app))],
        # Those that are bundled: whoever runs the tests may have some of their own.
        *[file.stem for folder in ("panels", "checks") for file in (paths.bundled("sql") / folder).glob("*.sql")],
        *recipes.bundled_names(),
        *recipes.schema(),
        *re.findall(r"create (?:table|view) (\w+)", SCHEMA),
        *RunState,
        *SHAPES,
        *[key for spec in (Config, HostSpec, StopSpec, PanelsSpec, AlertsSpec) for key in spec.__struct_fields__],
        "baseline",
    ],
)
def test_it_is_in_the_readme(word: str) -> None:
    assert named(word)


@pytest.mark.parametrize("key", COLUMNS["records"])
def test_a_log_key_is_in_the_readme_with_its_unit_and_what_it_means(key: str) -> None:
    unit, means = COLUMNS["records"][key]
    assert f"| `{key}` | {unit} | {means} |" in README


@pytest.mark.parametrize("code", ExitCode)
def test_an_exit_code_is_in_the_readme(code: ExitCode) -> None:
    assert re.search(rf"^\| {int(code)} \| ", README, re.M)


@pytest.mark.parametrize(("name", "command"), [pytest.param(*one, id=one[0]) for one in commands(get_command(app))])
def test_an_option_of_a_command_is_in_the_readme(name: str, command: Any) -> None:
    options = {option for param in command.params for option in param.opts if option.startswith("--")} - {"--help"}
    assert {option for option in options if option not in README} == set()


def test_every_key_is_in_the_readme() -> None:
    told = {word for words in re.findall(r"`([^`\n]+)`", SESSION) for word in (words, *words.split())}
    for first, last in re.findall(r"`(\d)` \.\. `(\d)`", SESSION):
        told |= {str(key) for key in range(int(first), int(last) + 1)}
    told |= set("hjkl") | set(re.findall(r"Enter|Esc|arrows|ctrl\+\w+|tab|space|page keys", SESSION))
    told |= {key.lower() for key in re.findall(r"F\d+", SESSION)}
    pages = {"pageup", "pagedown", "home", "end", "ctrl+d", "ctrl+u", "ctrl+q", "shift+tab", "f1"}
    missing = {
        f"{owner}: {binding.key} ({binding.description})"
        for owner, binding in bindings()
        if not {KEYS.get(key.removeprefix("shift+"), key) for key in binding.key.split(",")} & (told | pages)
    }
    assert missing == set()


def test_whatever_the_readme_links_to_is_there() -> None:
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", README, flags=re.S), re.M)
    anchors = {"#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    assert links
    assert [link for link in links if link not in anchors and not (ROOT / link).is_file()] == []


def test_the_changelog_knows_this_version() -> None:
    from dflash_tui import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

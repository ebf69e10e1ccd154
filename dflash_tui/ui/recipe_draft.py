"""What the launch form makes of its fields: a checked config to look at, or the sentence that says what is wrong.

Pure but for reading recipe files. Draws nothing, launches nothing.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from dflash_tui import recipes
from dflash_tui.errors import UsageError
from dflash_tui.text import visible


@dataclass(frozen=True)
class Draft:
    """`config` is flat; `changed` names the keys that the settings changed; `trouble` belongs to `field`."""

    config: dict[str, Any]
    changed: frozenset[str] = frozenset()
    trouble: str = ""
    field: Literal["recipe", "settings", ""] = ""


def settings_of(text: str) -> tuple[str, ...]:
    """The settings in a text: one `key=value` a line; blank lines and those that start with # are none."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def draft(recipe: str, settings: tuple[str, ...]) -> Draft:
    """The config that `recipe` with `settings` makes; never raises."""
    if not recipe:
        return Draft({}, trouble="choose a recipe, or give the path of a .toml file", field="recipe")
    try:
        plain = recipes.flatten(recipes.load(recipe).config)
    except UsageError as e:
        return Draft({}, trouble=str(e), field="recipe")
    try:
        config = recipes.flatten(recipes.load(recipe, settings).config)
    except UsageError as e:
        return Draft(plain, trouble=str(e).removeprefix("--set: ").removeprefix("--set "), field="settings")
    return Draft(config, frozenset(key for key in config if config[key] != plain.get(key)))


def config_lines(made: Draft) -> list[tuple[str, bool]]:
    """`key = value` for every key, what was changed first; the flag says that it was."""
    keys = sorted(made.config, key=lambda key: key not in made.changed)
    return [(visible(f"{key} = {json.dumps(made.config[key])}"), key in made.changed) for key in keys]


def hint(line: str) -> str:
    """What may stand on this line of the settings: the rule of its key, or the keys that begin so."""
    key = line.partition("=")[0].strip()
    rules = recipes.schema()
    if key in rules:
        rule = rules[key]
        return f"{key}: {recipes.allowed(rule)}. {rule['help']}"
    found = [name for name in rules if name.startswith(key)]
    return f"{len(found)} keys: {', '.join(found)}" if found and "=" not in line else ""

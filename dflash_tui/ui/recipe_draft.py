"""What the launch form makes of its fields: a checked config to look at, or the sentence that says what is wrong.
Pure but for reading recipe files. Draws nothing, launches nothing.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from dflash_tui import recipes
from dflash_tui.errors import UsageError
from dflash_tui.run_env import run_env
from dflash_tui.text import visible


@dataclass(frozen=True)
class Draft:
    """`config` is flat, of the settings that are right; `changed` holds what they changed, as it was; `trouble` is
    `where`."""

    config: dict[str, Any]
    changed: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    where: Literal["recipe", "settings", "gpus", "env-file", ""] = ""
    env: tuple[str, ...] = ()
    """The names that a person adds to the environment."""


def settings_of(text: str) -> tuple[str, ...]:
    """The settings in a text: one `key=value` a line; blank lines and those that start with # are none."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def draft(recipe: str, settings: tuple[str, ...]) -> Draft:
    """The config that `recipe` with `settings` makes; never raises."""
    if not recipe:
        return Draft({}, trouble="choose a recipe, or give the path of a .toml file", where="recipe")
    return _drafted(partial(recipes.load, recipe), settings)


def draft_clone(config: dict[str, Any], name: str, settings: tuple[str, ...]) -> Draft:
    """The same of the config of a run that is called `name`."""
    return _drafted(partial(recipes.change, config, name), settings)


def with_env(made: Draft, gpus: str | None, env_file: str | None) -> Draft:
    """The same draft with the environment that these make."""
    where: Literal["gpus", "env-file"] = "gpus"
    try:
        named = set(run_env(None, gpus))
        where = "env-file"
        named |= set(run_env(Path(env_file) if env_file else None, None))
    except UsageError as e:
        return made if made.trouble else replace(made, trouble=str(e).removeprefix("--gpus "), where=where)
    return replace(made, env=tuple(sorted(named)))


def _drafted(make: Callable[[tuple[str, ...]], recipes.Recipe], settings: tuple[str, ...]) -> Draft:
    try:
        plain = recipes.flatten(make(()).config)
    except UsageError as e:
        return Draft({}, trouble=str(e), where="recipe")
    try:
        config, trouble = recipes.flatten(make(settings).config), ""
    except UsageError as e:
        config, trouble = _of_the_right(make, settings, plain), str(e).removeprefix("--set: ").removeprefix("--set ")
    changed = {key: plain.get(key) for key in config if config[key] != plain.get(key)}
    return Draft(config, changed, trouble, "settings" if trouble else "")


def _of_the_right(
    make: Callable[[tuple[str, ...]], recipes.Recipe], settings: tuple[str, ...], plain: dict[str, Any]
) -> dict[str, Any]:
    """The config of those settings that go with the ones before them."""
    config = plain
    right: tuple[str, ...] = ()
    for setting in settings:
        with suppress(UsageError):
            config = recipes.flatten(make((*right, setting)).config)
            right = (*right, setting)
    return config


def config_lines(made: Draft) -> list[tuple[str, bool]]:
    """`key = value` for every key, what was changed first, with what it was; the flag says that it was."""
    keys = sorted(made.config, key=lambda key: key not in made.changed)
    return [(visible(f"{key} = {json.dumps(made.config[key])}" + _was(made, key)), key in made.changed) for key in keys]


def _was(made: Draft, key: str) -> str:
    return f"  (was {json.dumps(made.changed[key])})" if key in made.changed else ""


def hint(line: str) -> str:
    """What may stand on this line of the settings: the rule of its key, or the keys that begin so."""
    key = line.partition("=")[0].strip()
    rules = recipes.schema()
    if key in rules:
        rule = rules[key]
        unit = f", in {rule['unit']}" if rule.get("unit") else ""
        default = "must be given" if rule.get("required") else f"by default {json.dumps(rule.get('default'))}"
        return f"{key}: {recipes.allowed(rule)}{unit}; {default}. {rule['help']}"
    found = [name for name in rules if name.startswith(key)]
    return f"{len(found)} keys: {', '.join(found)}" if found and "=" not in line else ""

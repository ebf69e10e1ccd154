"""Recipes: a TOML file and `--set key=value` made into one checked config, before anything is pushed.

Owns the reading of `trainer/recipe_schema.json` on our side. The far side checks the same config again by the same
file, with the standard library alone (`trainer/config.py`); what a key means is the trainer's business.
"""

import difflib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean, visible


@dataclass(frozen=True, slots=True)
class Recipe:
    """A checked training config: `config` is nested and complete, defaults included."""

    name: str
    config: dict[str, Any]


def schema() -> dict[str, dict[str, Any]]:
    """Every recipe key, dotted, with its type, range, default, unit and help."""
    text = (paths.bundled("trainer") / "recipe_schema.json").read_text(encoding="utf-8")
    keys = json.loads(text)["keys"]
    return {key: rule for key, rule in keys.items() if "set_by" not in rule}


def bundled_names() -> list[str]:
    """The recipes that ship with the trainer."""
    return sorted(file.stem for file in (paths.bundled("trainer") / "recipes").glob("*.toml"))


def load(recipe: str, settings: Iterable[str] = ()) -> Recipe:
    """The recipe `recipe`, a file's path or a bundled name, with `key=value` settings laid over it.

    Raises UsageError that names the file or setting, the key, the value, what is allowed and the nearest right key.
    """
    file = _find(recipe)
    try:
        flat = flatten(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{file}: not readable as TOML: {e}") from e
    except OSError as e:
        raise UsageError(f"{file}: cannot be read: {e.strerror}") from e
    return _laid_over(flat, settings, file.stem, file.name)


def change(config: dict[str, Any], name: str, settings: Iterable[str]) -> Recipe:
    """The config of a run that is called `name` with settings laid over it; errors as in `load`."""
    return _laid_over(flatten(config), settings, name, f"the config of {name}")


def _laid_over(flat: dict[str, Any], settings: Iterable[str], name: str, where: str) -> Recipe:
    rules = schema()
    for key, value in flat.items():
        _check(key, value, rules, where=where)
    for setting in settings:
        key, value = _parse_setting(setting, rules)
        _check(key, value, rules, where="--set")
        flat[key] = value
    return Recipe(name, nest(_complete(flat, rules, where)))


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: {"noise": {"std": 0.1}} -> {"noise.std": 0.1}."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def nest(flat: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, leaf = key.split(".")
        table = tree
        for parent in parents:
            table = table.setdefault(parent, {})
        table[leaf] = value
    return tree


def _find(recipe: str) -> Path:
    file = Path(recipe).expanduser()
    if file.suffix == ".toml" or "/" in recipe:
        if file.is_file():
            return file
        raise UsageError(f"{visible(recipe)}: no such recipe file")
    if recipe in (names := bundled_names()):
        return paths.bundled("trainer") / "recipes" / f"{recipe}.toml"
    raise UsageError(f"no recipe named {recipe!r}: {did_you_mean(recipe, names)}; or give a .toml file's path")


def _parse_setting(setting: str, rules: dict[str, dict[str, Any]]) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals:
        raise UsageError(f"--set {visible(setting)}: write key=value")
    if key not in rules:
        raise UsageError(f"--set: unknown key {key!r}: {did_you_mean(key, rules)}")
    # TOML has none, but configs show it, and keys that may be null explain it.
    if text.strip() == "null":
        return key, None
    # A bare word is a string: --set lr_schedule=cosine needs no quotes, and no shell ever has to nest them.
    try:
        return key, tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return key, text


def _check(key: str, value: Any, rules: dict[str, dict[str, Any]], where: str) -> None:
    if key not in rules:
        raise UsageError(f"{where}: unknown key {key!r}: {did_you_mean(key, rules)}")
    rule = rules[key]
    if value is None and rule.get("nullable"):
        return
    if isinstance(value, str) and value in rule.get("also", ()):
        return
    if not (_fits_type(value, rule["type"]) and _fits_range(value, rule)):
        near = difflib.get_close_matches(str(value), _words(rule), n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{where}: {key} = {visible(json.dumps(value, default=str))}: must be {allowed(rule)}{hint}")


def _words(rule: dict[str, Any]) -> list[str]:
    return [str(w) for w in (*rule.get("choices", ()), *rule.get("also", ()))]


def _fits_type(value: Any, kind: str) -> bool:
    if kind.startswith("list["):
        return isinstance(value, list) and value != [] and all(_fits_type(item, kind[5:-1]) for item in value)
    if isinstance(value, bool):
        return kind == "boolean"
    types = {"integer": (int,), "number": (int, float), "string": (str,), "boolean": (bool,)}
    return isinstance(value, types[kind])


def _fits_range(value: Any, rule: dict[str, Any]) -> bool:
    for item in value if isinstance(value, list) else [value]:
        if "choices" in rule and item not in rule["choices"]:
            return False
        if isinstance(item, (int, float)) and not (
            rule.get("min", float("-inf")) <= item <= rule.get("max", float("inf"))
            and rule.get("exclusive_min", float("-inf")) < item < rule.get("exclusive_max", float("inf"))
        ):
            return False
    return True


def allowed(rule: dict[str, Any]) -> str:
    """What a key takes, in words: "a number from 0 to 1, or 'auto'"."""
    if "choices" in rule:
        text = "one of " + ", ".join(repr(c) for c in rule["choices"])
    else:
        kind = rule["type"]
        text = f"a list of {kind[5:-1]}s" if kind.startswith("list[") else f"a{'n' if kind == 'integer' else ''} {kind}"
        for name, words in (
            ("exclusive_min", "above"),
            ("min", "from"),
            ("max", "to"),
            ("exclusive_max", "below"),
        ):
            if name in rule:
                text += f" {words} {rule[name]:g}"
    others = [repr(word) for word in rule.get("also", ())] + ["null"] * bool(rule.get("nullable"))
    return text + "".join(f", or {word}" for word in others)


def _complete(flat: dict[str, Any], rules: dict[str, dict[str, Any]], where: str) -> dict[str, Any]:
    full = {}
    for key, rule in rules.items():
        if key in flat:
            full[key] = flat[key]
        elif rule.get("required"):
            raise UsageError(f"{where}: {key} is missing: {rule['help']}")
        else:
            full[key] = rule.get("default")
    return full

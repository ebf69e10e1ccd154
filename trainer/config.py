"""What a run is told: one JSON file, checked against `recipe_schema.json`.

Runs before torch is imported, so that a slip costs no four seconds of imports; standard library only. What a key means
stands in the schema and nowhere else; checks that need the target or the data belong to those modules.
"""

import difflib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainer.errors import ConfigError

_LARGEST = 2**63 - 1
# Dotted key -> value, every key of the schema present.
Config = Mapping[str, Any]
Spec = Mapping[str, Any]


def schema() -> dict[str, Spec]:
    """The keys of a config, by their dotted names."""
    text = Path(__file__).with_name("recipe_schema.json").read_text(encoding="utf-8")
    keys: dict[str, Spec] = json.loads(text)["keys"]
    return keys


def load(path: Path) -> Config:
    """The checked config in the JSON file `path`, with defaults filled in.

    Raises ConfigError, in one sentence that names the key, its value, and what is allowed.
    """
    try:
        nested = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"{path}: cannot be read ({e.strerror})") from e
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{path}: is not JSON ({e})") from e
    if not isinstance(nested, dict):
        raise ConfigError(f"{path}: must hold one JSON object")
    config = check(nested)
    if not Path(config["run_dir"]).is_absolute():
        raise ConfigError(f"run_dir: {config['run_dir']!r} is not an absolute path")
    return config


def check(nested: Mapping[str, Any]) -> dict[str, Any]:
    """The flat config of a nested one, with defaults; raises ConfigError as `load` does."""
    keys = schema()
    given = dict(_flatten(nested, keys))
    config = {}
    for key, spec in keys.items():
        if key in given:
            config[key] = _checked(key, given[key], spec)
        elif spec.get("required"):
            raise ConfigError(f"{key}: is missing; {spec['help']}")
        else:
            config[key] = spec["default"]
    return config


def nest(config: Config) -> dict[str, Any]:
    """The nested form of a flat config, as a config file and the log's start record hold it."""
    nested: dict[str, Any] = {}
    for key, value in config.items():
        *groups, name = key.split(".")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return nested


def flatten(nested: Mapping[str, Any]) -> dict[str, Any]:
    """The other way round; raises ConfigError for a key that is not in the schema."""
    return dict(_flatten(nested, schema()))


def _flatten(nested: Mapping[str, Any], keys: Mapping[str, Spec], prefix: str = "") -> Iterator[tuple[str, Any]]:
    groups = {key.rpartition(".")[0] for key in keys}
    for name, value in nested.items():
        key = prefix + name
        if key in groups and isinstance(value, dict):
            yield from _flatten(value, keys, key + ".")
        elif key in keys:
            yield key, value
        elif key in groups:
            raise ConfigError(f"{key}: {json.dumps(value)} is not allowed: an object with its keys")
        else:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=0.0)[0]
            raise ConfigError(f"{key}: there is no such key; the nearest is {near}")


def _checked(key: str, value: Any, spec: Spec) -> Any:
    if (value is None and spec.get("nullable")) or (isinstance(value, str) and value in spec.get("also", ())):
        return value
    kind: str = spec["type"]
    if kind.startswith("list["):
        fits = isinstance(value, list) and value != [] and all(_fits(item, kind[5:-1], spec) for item in value)
    else:
        fits = _fits(value, kind, spec)
    if not fits:
        raise ConfigError(f"{key}: {json.dumps(value)} is not allowed: {allowed(spec)}")
    return float(value) if kind == "number" else value


def _fits(value: Any, kind: str, spec: Spec) -> bool:
    # To Python, True is a number.
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str) and value in spec.get("choices", (value,))
    number = isinstance(value, int) or (kind == "number" and isinstance(value, float))
    return (
        number
        # JSON knows integers beyond all floats.
        and (math.isfinite(value) if isinstance(value, float) else abs(value) <= _LARGEST)
        and spec.get("min", value) <= value <= spec.get("max", value)
        and ("exclusive_min" not in spec or value > spec["exclusive_min"])
    )


def allowed(spec: Spec) -> str:
    """What a key takes, in words: "a number above 0 and at most 1"."""
    if "choices" in spec:
        return "one of " + ", ".join(spec["choices"])
    kind = spec["type"]
    noun = f"a list of {kind[5:-1]}s" if kind.startswith("list[") else f"{'an' if kind == 'integer' else 'a'} {kind}"
    bounds = [
        f"{word} {spec[bound]}"
        for bound, word in (("min", "at least"), ("exclusive_min", "above"), ("max", "at most"))
        if bound in spec
    ]
    others = [json.dumps(word) for word in spec.get("also", ())] + (["null"] if spec.get("nullable") else [])
    return " or ".join([" ".join([noun, " and ".join(bounds)]).strip(), *others])

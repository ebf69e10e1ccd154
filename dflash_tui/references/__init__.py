"""References: figures that somebody else reached, by the names of our log keys, to hold a run against.

A reference is a JSON file here or in `references/` of the config folder:

    title          what it is
    source         where its figures come from
    position_acc   accuracy by slot: a list from slot 1 on, or an object {"1": 0.92, "15": 0.375}
    tau            tokens a round, or a streak, by key: {"tau_linear_macro": 6.49}; "tau_linear_macro@GSM8K" is that of
                   the evaluation whose `name` is GSM8K
    other          anything else by key: {"full_block_rate": 0.165}

Nothing here knows runs.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean

_KEYS = ("title", "source", "position_acc", "tau", "other")


@dataclass(frozen=True, slots=True)
class Reference:
    """`figures` by (metric, stat): ("position_acc", "1"), ("ddtree_streak8", "last"), ("tau_linear_macro", "GSM8K")."""

    name: str
    title: str
    source: str
    figures: dict[tuple[str, str], float]


def names() -> list[str]:
    """The references that can be named: bundled ones, and the person's own."""
    return sorted({file.stem for folder in _folders() for file in folder.glob("*.json")})


def load(name: str) -> Reference:
    """The reference called `name`, or the one in the file `name`. UsageError says what is wrong with it and where."""
    file = _find(name)
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{file}: not readable as JSON: {e}") from e
    except OSError as e:
        raise UsageError(f"{file}: cannot be read: {e.strerror}") from e
    if not isinstance(tree, dict):
        raise UsageError(f"{file}: a reference is one object with the keys {', '.join(_KEYS)}")
    for key in tree:
        if key not in _KEYS:
            raise UsageError(f"{file}: unknown key {key!r}: {did_you_mean(key, _KEYS)}")
    figures = _positions(tree.get("position_acc", {}), file)
    for key in ("tau", "other"):
        for metric, value in _object(tree.get(key, {}), key, file).items():
            metric, _, of = metric.partition("@")
            figures[metric, of or "last"] = _number(value, f"{key}.{metric}", file)
    if not figures:
        raise UsageError(f"{file}: holds no figure: give it position_acc or tau")
    return Reference(file.stem, str(tree.get("title", file.stem)), str(tree.get("source", "")), figures)


def _folders() -> tuple[Path, Path]:
    return paths.config_dir() / "references", Path(__file__).parent


def _find(name: str) -> Path:
    if name.endswith(".json") or "/" in name:
        return Path(name)
    for folder in _folders():
        if (file := folder / f"{name}.json").exists():
            return file
    raise UsageError(f"no reference named {name!r}, and no .json file: {did_you_mean(name, names())}")


def _positions(told: Any, file: Path) -> dict[tuple[str, str], float]:
    slots = {str(slot): value for slot, value in enumerate(told, 1)} if isinstance(told, list) else told
    found = {}
    for slot, value in _object(slots, "position_acc", file).items():
        if not slot.isdecimal() or int(slot) < 1:
            raise UsageError(f"{file}: position_acc.{slot}: slots are numbers from 1 on")
        found["position_acc", slot] = _number(value, f"position_acc.{slot}", file)
    return found


def _object(value: Any, key: str, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{file}: {key} = {value!r}: must be an object of names and numbers")
    return value


def _number(value: Any, key: str, file: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise UsageError(f"{file}: {key} = {value!r}: is no number")
    return float(value)

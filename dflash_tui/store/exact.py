"""JSON objects -> rows of `records`, value by value: what plain.py does for plain lines, for all the others.

Nothing is guessed and nothing is lost: a value that does not fit its column stays in `extra` under its own key.
"""

import json
import math
import re
from typing import Any

from dflash_tui.store.keys import EVAL_WORDS, Names

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_MISFIT = object()
_encoder = json.JSONEncoder(ensure_ascii=False)


def row_of(names: Names, record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The cells of one logged object, `event` and `extra` among them, and notes on what did not fit."""
    cells: dict[str, Any] = {}
    layout = names.layout(tuple(record))
    extra = {key: record[key] for key in layout.unknown}
    notes = []
    for column, kind, keys in layout.known:
        for key in keys:
            value = record[key]
            if value is None:
                continue
            cell = value if type(value) is float and kind == "DOUBLE" else cell_of(kind, value)
            if cell is _MISFIT:
                notes.append(f"{key}: {_short(value)} is not {_KINDS[kind]}; kept in extra")
            if cell is _MISFIT or (column in cells and cells[column] != cell):
                extra[key] = value
            elif column not in cells:
                cells[column] = cell
    cells["event"] = event_of(record, cells)
    if extra:
        cells["extra"] = _strict(extra)
    return cells, notes


def event_of(record: dict[str, Any], cells: dict[str, Any]) -> str:
    """What kind of row it is. Without a word from the log: an evaluation, if it has only that loss; a note, if it has
    nothing that we know; else a train row."""
    named = cells.get("event")
    if isinstance(named, str):
        return "eval" if "event" not in record and named in EVAL_WORDS else named
    if "eval_loss" in cells and "loss" not in cells:
        return "eval"
    return "train" if cells else "note"


def cell_of(kind: str, value: Any) -> Any:
    """`value` as a column of this type holds it, or the mark of a misfit."""
    match kind:
        case "DOUBLE":
            return _double(value)
        case "BIGINT" | "INTEGER":
            return _whole(value, 2**63 if kind == "BIGINT" else 2**31)
        case "VARCHAR":
            return value if isinstance(value, str) else _MISFIT
        case "BOOLEAN":
            return value if isinstance(value, bool) else _MISFIT
        case "JSON":
            return _strict(value) if isinstance(value, dict | list) else _MISFIT
        case "DOUBLE[]":
            return _list(value, lambda item: _double(item))
        case _:
            return _list(value, lambda item: _whole(item, 2**63))


_KINDS = {
    "DOUBLE": "a number",
    "BIGINT": "a whole number",
    "INTEGER": "a whole number",
    "VARCHAR": "text",
    "BOOLEAN": "true or false",
    "JSON": "an object or a list",
    "DOUBLE[]": "a list of numbers",
    "BIGINT[]": "a list of whole numbers",
}


def as_json(cells: dict[str, Any]) -> str:
    """A row on its way to DuckDB's JSON reader, which takes Python's NaN and infinities but no half surrogates."""
    text = _encoder.encode(cells)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _double(value: Any) -> Any:
    if isinstance(value, bool):
        return _MISFIT
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text):
            return float(text)
        return _WORDS.get(text.lower().removeprefix("+"), _MISFIT)
    return _MISFIT


def _whole(value: Any, limit: int) -> Any:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,20}\s*", value):
        value = int(value)
    number = value if isinstance(value, int) and not isinstance(value, bool) else _double(value)
    if number is _MISFIT or not math.isfinite(number) or number != int(number):
        return _MISFIT
    return int(number) if -limit <= number < limit else _MISFIT


def _list(value: Any, item_of: Any) -> Any:
    if not isinstance(value, list):
        return _MISFIT
    items = [None if item is None else item_of(item) for item in value]
    return _MISFIT if any(item is _MISFIT for item in items) else items


def _strict(value: Any) -> Any:
    """`value` as strict JSON has it: a number that is not finite becomes its word."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

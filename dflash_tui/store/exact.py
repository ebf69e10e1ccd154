"""JSON objects -> rows of `records`, value by value: what forms.py and DuckDB do for plain lines, for all the others.

Nothing is guessed and nothing is lost: a value that does not fit its column stays in `extra` under its own key.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from dflash_tui.store.keys import EVAL_WORDS, NO_RANK, TRAIN_WORDS, Layout, Names

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_MISFIT = object()
_encoder = json.JSONEncoder(ensure_ascii=False)


def row_of(names: Names, record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The cells of one logged object, `event` and `extra` among them, and notes on what did not fit."""
    if any(type(value) is dict for value in record.values()):
        record = _spread(names, record)
    keys = tuple(record)
    layout = names.layout(keys)
    cells: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    notes: list[str] = []
    event = _said_event(layout, record, extra, notes)
    if event == "eval":
        layout = names.layout(keys, is_eval=True)
    extra |= {key: record[key] for key in layout.unknown}
    for column, kind, given in layout.known:
        if column == "event":
            continue
        for key in given:
            value = record[key]
            if value is None:
                continue
            cell = value if type(value) is float and kind == "DOUBLE" else cell_of(kind, value)
            if cell is _MISFIT and column == "time":
                cell = _clock(value)
            if column == "rank" and cell == NO_RANK:
                cell = 0
            if cell is _MISFIT:
                notes.append(f"{key}: {_short(value)} is not {_KINDS[kind]}; kept in extra")
            if cell is _MISFIT or (column in cells and cells[column] != cell):
                extra[key] = value
            elif column not in cells:
                cells[column] = cell
    cells["event"] = event or event_of(layout, cells)
    if cells["event"] == "eval" and "loss" in cells and "eval_loss" in names.kinds:
        cells.setdefault("eval_loss", cells["loss"])
    if layout.slots and _MISFIT not in (slots := [_double(record[key]) for key in layout.slots]):
        # Beside the keys themselves, which whoever logged them will look for.
        cells["position_acc"] = slots
    if extra:
        cells["extra"] = _strict(extra)
    return cells, notes


def event_of(layout: Layout, cells: dict[str, Any]) -> str:
    """What kind of row it is when the log has no word for it: a summary or an evaluation by its keys, an evaluation, if
    it has only that loss; a note, if it has nothing that we know; else a train row."""
    if layout.is_summary:
        return "summary"
    if layout.is_eval or ("eval_loss" in cells and "loss" not in cells):
        return "eval"
    return "train" if cells else "note"


def _said_event(layout: Layout, record: dict[str, Any], extra: dict[str, Any], notes: list[str]) -> str | None:
    """The log's own word for the row: any under `event`, but only train or eval under `mode` and the like."""
    said = None
    for key in next((given for column, _, given in layout.known if column == "event"), ()):
        value = record[key]
        word = value if isinstance(value, str) else None
        if key != "event" and word is not None:
            word = "eval" if word.lower() in EVAL_WORDS else "train" if word.lower() in TRAIN_WORDS else None
        elif word is None and value is not None:
            notes.append(f"{key}: {_short(value)} is not {_KINDS['VARCHAR']}; kept in extra")
        if said is None and word is not None:
            said = word
        elif value is not None and word != said:
            extra[key] = value
        if word is None and value is not None:
            extra[key] = value
    return said


def _spread(names: Names, record: dict[str, Any]) -> dict[str, Any]:
    """`record` with the dicts that hold figures laid flat: `{"train": {"loss": 2}}` is `{"train/loss": 2}`."""
    if record.get("event", "train") not in ("train", "eval"):
        return record
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict) and value and names.opens(key, value):
            inner = _flat(key, value)
            if not inner.keys() & (record.keys() | flat.keys()):
                flat |= inner
                continue
        flat[key] = value
    return flat


def _flat(path: str, tree: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{path}/{key}"
        flat |= _flat(name, value) if isinstance(value, dict) and value else {name: value}
    return flat


def _clock(value: Any) -> Any:
    """Seconds since 1970 of a date and time as text, read as UTC where it names no zone; the mark of a misfit else."""
    if not isinstance(value, str):
        return _MISFIT
    try:
        moment = datetime.fromisoformat(value.strip().replace(",", "."))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return _MISFIT


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
    # Of hundreds of digits there is no float: its range is asked first.
    number = value if isinstance(value, int) and not isinstance(value, bool) else _double(value)
    if number is _MISFIT or not -limit <= number < limit or number != int(number):
        return _MISFIT
    return int(number)


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

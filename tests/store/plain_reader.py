"""What a log says, restated in plain Python: the property tests' other opinion. Shares no code with the store."""

import json
import math
from typing import Any

STEP_NAMES = ("step", "global_step", "iter")
NUMBERS = ("loss", "grad_norm", "epoch")
KNOWN = {*STEP_NAMES, *NUMBERS, "lr", "learning_rate", "event", "grad_clipped", "position_acc", "eval_loss"}


def number(value: Any) -> float | None:
    """A number, also one in quotes; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def read(data: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """The rows and the numbers of the refused lines, of all lines that have an end."""
    rows, refused = [], []
    for line_no, raw in enumerate(data.split(b"\n")[:-1], start=1):
        text = raw.decode(errors="replace").strip("\0 \t\r\n")
        if not text:
            continue
        records = objects(text)
        rows += [{"line_no": line_no, **row(record)} for record in records]
        if not records:
            refused.append(line_no)
    return rows, refused


def objects(text: str) -> list[dict[str, Any]]:
    """What stands on a line, one object or several behind one another; nothing when anything else does too."""
    found = []
    while text:
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return []
        if not isinstance(value, dict):
            return []
        found.append(value)
        text = text[end:].lstrip(" \t\r\n")
    return found


def row(record: dict[str, Any]) -> dict[str, Any]:
    cells = {name: number(record.get(name)) for name in NUMBERS}
    lr = [number(record.get(name)) for name in ("lr", "learning_rate")]
    cells["lr"] = lr[0] if lr[0] is not None else lr[1]
    steps = [whole(record.get(name)) for name in STEP_NAMES]
    cells["step"] = next((step for step in steps if step is not None), None)
    cells["grad_clipped"] = record.get("grad_clipped") if isinstance(record.get("grad_clipped"), bool) else None
    cells["position_acc"] = record.get("position_acc") if isinstance(record.get("position_acc"), list) else None
    has_any = any(value is not None for value in cells.values())
    named = record.get("event")
    cells["event"] = named if isinstance(named, str) else "train" if has_any else "note"
    cells["unknown"] = {key: value for key, value in record.items() if key not in KNOWN}
    return cells


def whole(value: Any) -> int | None:
    found = number(value)
    return int(found) if found is not None and math.isfinite(found) and found == int(found) else None


def attempts(rows: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
    """First line and first train step of each attempt, by the rules of a resume told in the design."""
    found: list[list[Any]] = [[1, None]]
    before: tuple[int, float | None] | None = None
    for cells in rows:
        if cells["event"] == "start" and found[-1][1] is not None:
            found.append([cells["line_no"], None])
        if cells["event"] != "train" or cells["step"] is None:
            continue
        epoch = cells["epoch"]
        is_later_epoch = before is not None and None not in (epoch, before[1]) and epoch > before[1]  # type: ignore[operator]
        if before and cells["step"] <= before[0] and not is_later_epoch and found[-1][1] is not None:
            found.append([cells["line_no"], None])
        if found[-1][1] is None:
            found[-1][1] = cells["step"]
        before = (cells["step"], epoch)
    return [(line, step) for line, step in found]


def counted_steps(rows: list[dict[str, Any]]) -> list[int]:
    """The steps of the train rows that count: no later attempt began at or before them."""
    begun = attempts(rows)
    steps = []
    for cells in rows:
        if cells["event"] != "train" or cells["step"] is None:
            continue
        later = [step for line, step in begun if line > cells["line_no"] and step is not None]
        if not later or cells["step"] < min(later):
            steps.append(cells["step"])
    return steps

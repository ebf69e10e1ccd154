"""Answers as text on a stream: csv, JSON, tables, and the report of a run.

Owns how a value is written in each format. Decides neither where the text goes nor in what colour.
Non-finite numbers are "NaN", "Infinity" and "-Infinity" everywhere; an absent value is null, or an empty csv cell.
"""

import csv
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from dflash_tui.paths import mirrors_dir
from dflash_tui.text import number, visible

if TYPE_CHECKING:
    from dflash_tui.store.base import Answer, PanelResult, ResolvedWindow, Row, RunDetail

TABLE_ROWS = 500
TABLE_WIDTH = 100_000


def plain(value: Any) -> Any:
    """`value` as strict JSON has it: non-finite floats become strings, bytes become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return number(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value


def dump_json(value: Any, out: TextIO) -> None:
    """One strict JSON document and a newline."""
    out.write(_json_text(value, indent=1) + "\n")


def _json_text(value: Any, indent: int | None = None) -> str:
    # In ASCII: no character that a terminal obeys or hides, and none that a narrow stdout would spoil.
    return json.dumps(plain(value), allow_nan=False, indent=indent).replace("\x7f", "\\u007f")


def write_csv(answer: "Answer", out: TextIO) -> None:
    """Every byte as it is; on a terminal, control characters are made visible."""
    writer = csv.writer(out, lineterminator="\n")
    show = _visible_cell if out.isatty() else _csv_cell
    writer.writerow(map(show, answer.columns))
    for batch in answer.batches():
        writer.writerows(map(show, row) for row in batch)


def write_json(answer: "Answer", out: TextIO) -> None:
    """A list of objects, one row a line, written as the rows come."""
    separator = "["
    for batch in answer.batches():
        for row in batch:
            out.write(separator + "\n" + _json_text(dict(zip(answer.columns, row, strict=True))))
            separator = ","
    out.write("\n]\n" if separator == "," else "[]\n")


def write_table(answer: "Answer", out: TextIO, width: int = TABLE_WIDTH) -> str | None:
    """Aligned columns for eyes; returns the sentence that says what was cut, if anything was."""
    rows: list[tuple[Any, ...]] = []
    for batch in answer.batches():
        rows += islice(batch, TABLE_ROWS + 1 - len(rows))
        if len(rows) > TABLE_ROWS:
            break
    out.write(draw_table(answer.columns, [list(row) for row in rows[:TABLE_ROWS]], width) + "\n")
    if len(rows) > TABLE_ROWS:
        return f"showing the first {TABLE_ROWS} rows; --format csv gives all of them"
    return None


WRITERS: dict[str, Callable[["Answer", TextIO], Any]] = {"table": write_table, "csv": write_csv, "json": write_json}


def draw_table(columns: list[str], rows: list[list[Any]], width: int = TABLE_WIDTH) -> str:
    """A table as text, numbers to the right; no cell can move the cursor or break a line."""
    from dflash_tui.charts import draw

    cells = [[_table_cell(value) for value in row] for row in rows]
    canvas = draw("table", [visible(c) for c in columns], cells, {}, width=width, height=len(rows) + 1)
    return "\n".join(line.rstrip() for line in canvas.text().splitlines())


def _csv_cell(value: Any) -> Any:
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    value = plain(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _visible_cell(value: Any) -> Any:
    cell = _csv_cell(value)
    return visible(cell) if isinstance(cell, str) else cell


def _table_cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return visible(json.dumps(plain(value), ensure_ascii=False))
    if isinstance(value, bytes):
        return visible(plain(value))
    return visible(value) if isinstance(value, str) else value


def write_report(
    title: str, window: "ResolvedWindow", panels: Iterable["PanelResult"], out: TextIO, width: int = TABLE_WIDTH
) -> None:
    """Every panel's headline, and every table panel in full; a panel with nothing to show says why."""
    span = "no rows" if window.first is None else f"steps {number(window.first)}..{number(window.last)}"
    out.write(f"{visible(title)} · {number(window.n)} rows, {span}\n")
    for panel in panels:
        head = panel.headline if panel.state == "rows" else panel.why
        out.write(f"\n{visible(panel.title)}" + (f" · {visible(head)}" if head else "") + "\n")
        if panel.state == "rows" and panel.chart in ("table", "stat"):
            out.write("\n".join("  " + line for line in draw_table(panel.columns, panel.rows, width - 2).splitlines()))
            out.write("\n")


def report_tree(run_id: str, window: "ResolvedWindow", panels: Iterable["PanelResult"]) -> dict[str, Any]:
    """The report as the JSON shape that scripts build on."""
    keys = ("state", "why", "headline", "columns", "units", "rows")
    return {
        "run": run_id,
        "window": {"kind": window.kind, "n": window.n, "first": window.first, "last": window.last},
        "panels": {panel.name: {key: getattr(panel, key) for key in keys} for panel in panels},
    }


def status_tree(detail: "RunDetail", checkpoints: list["Row"]) -> dict[str, Any]:
    """One run as `runs --json` has it, and what else is known of it. `checkpoints` holds the newest one, or nothing."""
    record = detail.record
    paths = {"run": record.path, "log": record.log, "mirror": str(mirrors_dir() / detail.run.run_id)}
    keys = ("step", "path", "bytes", "time")
    checkpoint = dict(zip(keys, checkpoints[0], strict=True)) if checkpoints else None
    if checkpoint and record.path:
        # A trainer names its checkpoints from the run's folder, which may be moved as a whole.
        checkpoint["path"] = str(PurePosixPath(record.path, checkpoint["path"]))
    attempts = [msgspec.to_builtins(attempt) for attempt in detail.attempts]
    return asdict(detail.run) | {
        "attempts": attempts,
        "pid": detail.pid,
        "paths": paths,
        "checkpoint": checkpoint,
    }

"""A run as text and as JSON: its panels, its status. And the small tables that commands print for eyes.

Decides neither where the text goes nor in what colour. Numbers here are rounded; in the tables of `query` they are not.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from dflash_tui.output.values import blob, plain
from dflash_tui.paths import mirrors_dir
from dflash_tui.text import number, numbered, visible

if TYPE_CHECKING:
    from dflash_tui.store.base import PanelResult, ResolvedWindow, Row, RunDetail

TABLE_WIDTH = 100_000


def dump_json(value: Any, out: TextIO) -> None:
    """One strict JSON document and a newline, in ASCII: no character that a terminal obeys."""
    out.write(json.dumps(plain(value), allow_nan=False, indent=1).replace("\x7f", "\\u007f") + "\n")


def draw_table(columns: list[str], rows: list[list[Any]], width: int = TABLE_WIDTH) -> str:
    """A table as text, numbers to the right; no cell can move the cursor or break a line."""
    from dflash_tui.charts import draw

    cells = [[_table_cell(value) for value in row] for row in rows]
    canvas = draw("table", [visible(c) for c in columns], cells, {}, width=width, height=len(rows) + 1)
    return "\n".join(line.rstrip() for line in canvas.text().splitlines())


def _table_cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return visible(json.dumps(plain(value), ensure_ascii=False))
    if isinstance(value, bytes):
        return blob(value)
    return visible(value) if isinstance(value, str) else value


def write_report(
    title: str, window: "ResolvedWindow", panels: Iterable["PanelResult"], out: TextIO, width: int = TABLE_WIDTH
) -> None:
    """Every panel's headline, and every table panel in full; a panel with nothing to show says why."""
    span = "no rows" if window.first is None else f"steps {number(window.first)}..{number(window.last)}"
    out.write(f"{visible(title)} · {numbered(window.n, 'row')}, {span}\n")
    for panel in panels:
        head, rows = _told(panel)
        out.write(f"\n{visible(panel.title)}" + (f" · {visible(head)}" if head else "") + "\n")
        if rows:
            out.write("\n".join("  " + line for line in draw_table(panel.columns, rows, width - 2).splitlines()))
            out.write("\n")


def _told(panel: "PanelResult") -> tuple[str | None, list[list[Any]]]:
    """What stands beside a panel's title, and its rows: those of a table; of a chart without a headline the last."""
    if panel.state != "rows":
        return panel.why, []
    if panel.chart in ("table", "stat") or not panel.rows:
        return panel.headline, panel.rows
    if panel.headline:
        return panel.headline, []
    return f"the last of {numbered(len(panel.rows), 'row')}", panel.rows[-1:]


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
        "note": detail.note,
    }

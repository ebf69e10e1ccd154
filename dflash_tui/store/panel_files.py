"""A panel's file read into a `Panel`; every mistake in it says file:line (sql_header.py reads what is above its SQL).

A file is one comment and one or two SELECTs. The comment begins with the panel's help text; behind an empty line stand
the keys, one `-- key: value` a line, all optional and none other than these:

    title      what stands above the panel; default: the file's name
    chart      one of CHARTS and its options, `band x=step y=p50 low=p10 high=p90`: columns of the rows
    order      where the panel stands among the others, small numbers first
    unit       unit of the axis y
    units      unit of each column, in their order, separated by commas; "-" for none; default: none
    scale      linear or log: of the axis y
    better     lower or higher: which way is good news
    requires   log keys without which there is nothing to show, separated by commas; `a | b`: one of them will do.
               `evals.key` is looked for in the evaluations, `gpus.key` in the samples of GPUs, any other among the
               train rows
    window     run: all rows, always, save under A..B; last N, or A..B: unless another is asked for
    cache      what of the answer may be kept until the next report. run: all of it, while the run has no new row; the
               SELECTs then ask for nothing but this run. buckets: that, and the rows of closed buckets when it has
               some; each row is then made of one `step // $width` alone, `step` is in it, and they come in its order

What the SELECTs may name is in panels.py.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from dflash_tui.runs import Window
from dflash_tui.store.sql_header import Requirement, load_folder, one_of, read_header, read_order, read_requires
from dflash_tui.text import did_you_mean, visible

# Each chart's options: those it needs, those it may have. Their values are columns of the rows, of which `y` may list
# several with commas between; save in _WORDS. What a chart takes without them is up to the chart.
CHARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "table": ((), ()),
    "line": ((), ("x", "y", "y2", "low", "high", "x_scale", "clip")),
    "band": (("low", "high"), ("x", "y", "y2", "x_scale", "clip")),
    "bars": ((), ("x", "y", "n")),
    "hist": ((), ("low", "high", "y")),
    "spark": ((), ("x", "y")),
    "stat": ((), ("y",)),
}
_WORDS = {"x_scale": ("linear", "log", "time", "duration"), "clip": ("outliers",)}


@dataclass(frozen=True, slots=True)
class Panel:
    """One question: its file's header, and the whole text of the file as `sql`.

    `broken` says why a file cannot be read as a panel; it stands in its place, so that the others go on.
    """

    name: str
    file: Path
    sql: str
    title: str
    help: str = ""
    chart: str = "table"
    axes: dict[str, str] = field(default_factory=dict)
    order: int = 1000
    unit: str | None = None
    units: tuple[str, ...] | None = None
    scale: Literal["linear", "log"] = "linear"
    better: Literal["lower", "higher"] | None = None
    requires: tuple[Requirement, ...] = ()
    window: Window | None = None
    cache: Literal["run", "buckets"] | None = None
    broken: str | None = None

    def columns(self) -> list[tuple[str, str]]:
        """The columns that the chart draws, each with its option: ("y", "p50")."""
        return [
            (option, column)
            for option, value in self.axes.items()
            if option not in _WORDS
            for column in value.split(",")
        ]


def load_panels() -> list[Panel]:
    """All panels in their order. The person's own replace the bundled ones of the same name.

    Files are read anew at each call, so a new panel needs no restart.
    """
    panels = load_folder("panels", parse, _broken)
    return sorted(panels, key=lambda panel: (panel.order, panel.name))


def _broken(name: str, file: Path, why: str) -> Panel:
    return Panel(name, file, "", name, help=why, broken=why)


@lru_cache(maxsize=256)
def parse(name: str, file: Path, text: str) -> Panel:
    """The panel in `text`; UsageError says file:line of the first mistake."""
    help_text, fields = read_header(file, text, _READERS)
    fields["chart"], fields["axes"] = fields.get("chart", ("table", {}))
    return Panel(name, file, text, help=help_text, **{"title": name, **fields})


def has_header(file: Path, text: str) -> bool:
    """Whether `text` sets a key. UsageError says file:line of a mistake in it."""
    return bool(read_header(file, text, _READERS)[1])


def _read_chart(text: str) -> tuple[str, dict[str, str]]:
    kind, *words = text.split()
    if kind not in CHARTS:
        raise ValueError(f"unknown chart {kind!r}: {did_you_mean(kind, CHARTS)}")
    needed, more = CHARTS[kind]
    axes: dict[str, str] = {}
    for word in words:
        option, equals, column = word.partition("=")
        if option not in needed + more:
            known = did_you_mean(option, needed + more) if needed + more else "it has none"
            raise ValueError(f"unknown option {option!r} of chart {kind!r}: {known}")
        if not equals or not all(column.split(",")):
            raise ValueError(f"option {option!r} of chart {kind!r} names a column: {option}=step")
        if option in _WORDS and column not in _WORDS[option]:
            raise ValueError(f"option {option}={column!r}: {did_you_mean(column, _WORDS[option])}")
        axes[option] = column
    if missing := [option for option in needed if option not in axes]:
        raise ValueError(f"chart {kind!r} needs {' and '.join(f'{option}=COLUMN' for option in missing)}")
    return kind, axes


def _read_units(text: str) -> tuple[str, ...]:
    units = [unit.strip() for unit in text.split(",")]
    return tuple("" if unit == "-" else visible(unit) for unit in units)


def _read_window(text: str) -> Window:
    if text == "run":
        return Window()
    if match := re.fullmatch(r"last ([0-9]+)", text):
        return Window.last_rows(int(match[1]))
    if match := re.fullmatch(r"(-?[0-9]+)\.\.(-?[0-9]+)", text):
        return Window.between(int(match[1]), int(match[2]))
    raise ValueError(f"window {text!r}: write run, last N or A..B")


_READERS: dict[str, Callable[[str], Any]] = {
    "title": visible,
    "chart": _read_chart,
    "order": read_order,
    "unit": visible,
    "units": _read_units,
    "scale": one_of("linear", "log"),
    "better": one_of("lower", "higher"),
    "requires": read_requires,
    "window": _read_window,
    "cache": one_of("run", "buckets"),
}

"""A panel's file read into a `Panel`; every mistake in it says file:line. The bundled folder, then the person's.

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
               `evals.key` is looked for in the evaluations, any other among the train rows
    window     run: all rows, always, save under A..B; last N, or A..B: unless another is asked for
    cache      what of the answer may be kept until the next report. run: all of it, while the run has no new row; the
               SELECTs then ask for nothing but this run. buckets: that, and the rows of closed buckets when it has
               some; each row is then made of one `step // $width` alone, `step` is in it, and they come in its order

What the SELECTs may name is in panels.py. Nothing here knows SQL beyond its comments, or opens a database.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import Window
from dflash_tui.text import did_you_mean, visible

_KEY_LINE = re.compile(r"([A-Za-z_]+):(?:\s+(.*))?")

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
class Requirement:
    """One of `keys` must have been logged in `relation`, or there is nothing to show."""

    relation: Literal["steps", "evals"]
    keys: tuple[str, ...]


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
    found: dict[str, Panel] = {}
    for folder in (paths.bundled("sql") / "panels", paths.config_dir() / "panels"):
        for file in _sql_files(folder):
            name = visible(file.stem)
            found[name] = _load(name, file)
    return sorted(found.values(), key=lambda panel: (panel.order, panel.name))


def _load(name: str, file: Path) -> Panel:
    try:
        return parse(name, file, file.read_text(encoding="utf-8"))
    except UsageError as e:
        why = str(e)
    except UnicodeDecodeError as e:
        why = f"{visible(str(file))}: not UTF-8 at byte {e.start}; save it as UTF-8"
    except OSError as e:
        why = f"{visible(str(file))}: cannot be read: {e.strerror}"
    return Panel(name, file, "", name, help=why, broken=why)


def _sql_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".sql" and not file.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as e:
        raise UsageError(f"{folder}: the panels in it cannot be listed: {e.strerror}") from e


@lru_cache(maxsize=256)
def parse(name: str, file: Path, text: str) -> Panel:
    """The panel in `text`; UsageError says file:line of the first mistake."""
    help_lines: list[str] = []
    fields: dict[str, Any] = {}
    for number, line in _header(text):
        match = _KEY_LINE.fullmatch(line)
        # A line of help may wrap before a word and a colon; the keys begin with one that we know, or after a gap.
        if not fields and not (match and (match[1] in _READERS or not (help_lines and help_lines[-1]))):
            help_lines.append(line)
        elif line:
            try:
                key, value = _read_key(line, match)
            except (ValueError, UsageError) as e:
                raise UsageError(f"{visible(str(file))}:{number}: {e}") from e
            if key in fields:
                raise UsageError(f"{visible(str(file))}:{number}: {key!r} is set twice")
            fields[key] = value
    fields["chart"], fields["axes"] = fields.get("chart", ("table", {}))
    return Panel(name, file, text, help="\n".join(help_lines).strip(), **{"title": name, **fields})


def _header(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the comment that the file begins with, without their dashes, and their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            return
        yield number, line.lstrip("-").strip()


def _read_key(line: str, match: re.Match[str] | None) -> tuple[str, Any]:
    if match is None:
        raise ValueError(f"{line!r} is no 'key: value', and the keys have begun above it")
    key, text = match[1], (match[2] or "").strip()
    if key not in _READERS:
        raise ValueError(f"unknown key {key!r}: {did_you_mean(key, _READERS)}")
    if not text:
        raise ValueError(f"{key!r} has no value")
    return key, _READERS[key](text)


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


def _read_order(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ValueError(f"order {text!r} is no whole number")
    return int(text)


def _read_units(text: str) -> tuple[str, ...]:
    units = [unit.strip() for unit in text.split(",")]
    return tuple("" if unit == "-" else visible(unit) for unit in units)


def _read_requires(text: str) -> tuple[Requirement, ...]:
    found = []
    for group in text.split(","):
        words = [word.strip() for word in group.split("|")]
        is_eval = all(word.startswith("evals.") for word in words)
        keys = tuple(word.removeprefix("evals.") if is_eval else word for word in words)
        if not all(re.fullmatch(r"[^\s.]+", key) for key in keys):
            raise ValueError(f"requires {group.strip()!r}: write key, evals.key, or key | key")
        found.append(Requirement("evals" if is_eval else "steps", keys))
    return tuple(found)


def _read_window(text: str) -> Window:
    if text == "run":
        return Window()
    if match := re.fullmatch(r"last ([0-9]+)", text):
        return Window.last_rows(int(match[1]))
    if match := re.fullmatch(r"(-?[0-9]+)\.\.(-?[0-9]+)", text):
        return Window.between(int(match[1]), int(match[2]))
    raise ValueError(f"window {text!r}: write run, last N or A..B")


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r}: {did_you_mean(text, words)}")
        return text

    return read


_READERS: dict[str, Callable[[str], Any]] = {
    "title": visible,
    "chart": _read_chart,
    "order": _read_order,
    "unit": visible,
    "units": _read_units,
    "scale": _one_of("linear", "log"),
    "better": _one_of("lower", "higher"),
    "requires": _read_requires,
    "window": _read_window,
    "cache": _one_of("run", "buckets"),
}

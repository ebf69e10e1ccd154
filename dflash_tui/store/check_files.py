"""A check's file read into a `Check`; every mistake in it says file:line (sql_header.py reads what is above its SQL).

A file is one comment and one SELECT. The comment begins with what the check means; behind an empty line stand the
keys, one `-- key: value` a line, all optional and none other than these:

    title        what stands above a finding; default: the file's name
    order        where its findings stand among others as bad, small numbers first
    requires     log keys without which there is nothing to check, as in a panel's file
    thresholds   `name = number` separated by commas; the SELECT has each as $name, `[checks.NAME]` of config.toml sets
                 another number
    cache        run: what it finds may be kept while the run has no new row; the SELECT then asks of this run alone
    next         what to look at when it finds something, one sentence

What the SELECT may name, and what it gives, is in checks.py.
"""

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from dflash_tui.store.sql_header import (
    Readers,
    Requirement,
    load_folder,
    one_of,
    read_header,
    read_order,
    read_requires,
)
from dflash_tui.text import visible


@dataclass(frozen=True, slots=True)
class Check:
    """One question whose answers are findings: its file's header, and the whole text of the file as `sql`.

    `broken` says why a file cannot be read as a check; it stands in its place, so that the others go on.
    """

    name: str
    file: Path
    sql: str
    title: str
    help: str = ""
    order: int = 1000
    requires: tuple[Requirement, ...] = ()
    thresholds: dict[str, float] = field(default_factory=dict)
    next: str = ""
    cache: Literal["run"] | None = None
    broken: str | None = None


def load_checks() -> list[Check]:
    """All checks in their order. The person's own replace bundled ones of the same name; new ones need no restart."""
    return sorted(load_folder("checks", parse, _broken), key=lambda check: (check.order, check.name))


def _broken(name: str, file: Path, why: str) -> Check:
    return Check(name, file, "", name, help=why, broken=why)


@lru_cache(maxsize=256)
def parse(name: str, file: Path, text: str) -> Check:
    """The check in `text`; UsageError says file:line of the first mistake."""
    help_text, fields = read_header(file, text, _READERS)
    return Check(name, file, text, help=help_text, **{"title": name, **fields})


def _read_thresholds(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in text.split(","):
        match = re.fullmatch(r"([a-z][a-z0-9_]*)\s*=\s*(\S+)", item.strip())
        if not match:
            raise ValueError(f"thresholds {item.strip()!r}: write name = number")
        name, value = match[1], _number(match[2])
        if name in found:
            raise ValueError(f"threshold {name!r} is set twice")
        found[name] = value
    return found


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"threshold {text!r} is no number")
    return value


_READERS: Readers = {
    "title": visible,
    "order": read_order,
    "requires": read_requires,
    "thresholds": _read_thresholds,
    "next": visible,
    "cache": one_of("run"),
}

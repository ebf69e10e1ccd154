"""The list of the Compare screen: code, config, figures and a reference, a line each, of run a and run b.

What is compared stands in `comparison`. Asks the store nothing.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from dflash_tui.charts.cells import fit_middle
from dflash_tui.comparison import EVALUATED, NOWHERE, TRAINED, Comparison, Held, Metric
from dflash_tui.differences import Difference, part_of
from dflash_tui.references import Reference
from dflash_tui.text import number, number_within, visible
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.listing import Listing

SIGNS = "abcd"
REFERENCE = "reference"
_HASH_DIGITS = 10
_VALUE_CELLS = 11
_DELTA_CELLS = 9


class CompareRow(NamedTuple):
    """A line. `metric` is the log key whose course it is about; `whole` says what the columns may have cut."""

    label: str
    a: str = ""
    b: str = ""
    delta: str = ""
    pct: str = ""
    metric: str = ""
    whole: str = ""
    is_head: bool = False


LABEL: Column[CompareRow] = Column(
    "", 20, lambda row: Cell(row.label, "list--head" if row.is_head else "list--quiet"), takes_rest=True
)
COLUMNS: tuple[Column[CompareRow], ...] = (
    LABEL,
    Column("a", _VALUE_CELLS, lambda row: Cell(row.a, "list--name"), "right"),
    Column("b", _VALUE_CELLS, lambda row: Cell(row.b, "list--name"), "right"),
    Column("b - a", _DELTA_CELLS, lambda row: Cell(row.delta), "right", rank=2),
    Column("%", 7, lambda row: Cell(row.pct, "list--quiet"), "right", rank=1),
)


class CompareList(Listing[CompareRow]):
    COLUMNS = COLUMNS
    COMPONENT_CLASSES = Listing.COMPONENT_CLASSES | {"list--head"}

    def cell(self, column: Column[Any], row: CompareRow, width: int) -> Cell:
        text, look = column.cell(row)
        return Cell(fit_middle(text, width) if column is LABEL else text, look)

    def row_id(self, row: CompareRow) -> str:
        # A figure is there again where it is held against a reference.
        return f"{row.label} {row.is_head} {row.whole}"

    def go_to(self, label: str) -> None:
        """Put the cursor on the head of a part, if it is there, at the top of what is in sight."""
        for index, row in enumerate(self.rows):
            if row.is_head and row.label == label:
                self.action_move_to(len(self.rows) - 1)
                self.action_move_to(index)


def rows_of(found: Comparison, reference: Reference | None) -> list[CompareRow]:
    """What tells the runs apart first, then how they do, then how that is beside what others reached."""
    return [*_differences(found), *_figures(found), *_held(found, reference)]


def _differences(found: Comparison) -> Iterator[CompareRow]:
    if found.b is None:
        return
    for part in ("code", "config"):
        differences = [one for one in found.config if part_of(one.key) == part]
        alike, whole = ("not known", f"neither run tells its {part}") if part in found.untold else ("the same", "")
        yield CompareRow(part, f"{len(differences)} differ" if differences else alike, is_head=True, whole=whole)
        yield from map(_difference, differences)


def _difference(one: Difference) -> CompareRow:
    a, b = _shown(one.a), _shown(one.b)
    short = {"code_hash": _HASH_DIGITS, "git_commit": _HASH_DIGITS}.get(one.key)
    delta = pct = ""
    if _is_number(one.a) and _is_number(one.b):
        metric = Metric(one.key, "", one.a, one.b)
        delta, pct = _signed(metric.delta), _pct(metric)
    whole = f"{one.key}: a {_say(one.a)}, b {_say(one.b)}"
    return CompareRow(visible(one.key), a[:short], b[:short], delta, pct, whole=whole)


def _figures(found: Comparison) -> Iterator[CompareRow]:
    if found.window is None:
        return
    first, last = found.window
    whole = f"figures of steps {first:,}..{last:,}" + ", which both have" * (found.b is not None)
    yield CompareRow("figures", whole=whole, is_head=True)
    a, b = found.num_rows
    yield CompareRow("n", _value(a), _value(b) if found.b else "", _signed(b - a) if found.b else "", whole=whole)
    if found.notes:
        told = ["none" if not any(key in found.evaluated for key in side) else "" for side in found.figures]
        yield CompareRow("evaluations", told[0], told[1] if found.b else "", whole="; ".join(found.notes))
    for one in found.metrics:
        label = f"{one.metric} {one.stat}".strip()
        yield CompareRow(label, _value(one.a), _value(one.b), _signed(one.delta), _pct(one), one.metric, label)


def _held(found: Comparison, reference: Reference | None) -> Iterator[CompareRow]:
    if reference is None or (found.window is None and not any(found.figures)):
        return
    yield CompareRow(REFERENCE, visible(reference.name), is_head=True, whole=_source(reference))
    for one in found.held_against(reference):
        label = f"{one.metric} {one.stat}" + f", {TRAINED}" * (one.of == TRAINED)
        a, b = _share(one, one.a), _share(one, one.b) if found.b else ""
        # A reference is of decoding or of an evaluation: what is not is said.
        whole = _source(reference) if one.of == EVALUATED else f"{one.of or NOWHERE}; {_source(reference)}"
        of = f"of {number_within(one.reference, _DELTA_CELLS - 3)}"
        yield CompareRow(label, a, b, of, metric=one.metric, whole=whole)


def _share(one: Held, value: float | None) -> str:
    share = one.share(value)
    told = "" if share is None else f"{number(value, 3)} {share:.0f} %"
    return told if 0 < len(told) <= _VALUE_CELLS else number_within(value, _VALUE_CELLS, 3)


def _source(reference: Reference) -> str:
    return f"{reference.title}; {reference.source}" if reference.source else reference.title


def _say(value: Any) -> str:
    if isinstance(value, str):
        return visible(value)
    if value is None:
        return "-"
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else visible(json.dumps(value))


def _shown(value: Any) -> str:
    """As it stands in a column: a number with as many digits as fit, at least enough to tell."""
    text = _say(value)
    is_cut = isinstance(value, (int, float)) and not isinstance(value, bool) and len(text) > _VALUE_CELLS
    return number_within(value, _VALUE_CELLS, _VALUE_CELLS) if is_cut else text


def _value(value: float | None) -> str:
    return number_within(value, _VALUE_CELLS)


def _is_number(value: Any) -> bool:
    """One that can be reckoned with: a config may hold whole numbers beyond what a float does."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _signed(delta: float | None) -> str:
    if delta is None:
        return ""
    sign = "+" * (delta > 0)
    return sign + number_within(delta, _DELTA_CELLS - len(sign), 3)


def _pct(one: Metric) -> str:
    """The change in percent of a; of what grew more than tenfold how many times b is a."""
    if one.pct is None:
        return ""
    if one.pct <= -1000:
        return "<-999"
    if one.pct >= 1000:
        assert one.a is not None and one.b is not None
        times = one.b / one.a
        return f"x{times:.0f}" if 0 < times < 10_000 else ">999"
    return f"{one.pct:+.1f}" if abs(one.pct) >= 0.05 else "0.0"

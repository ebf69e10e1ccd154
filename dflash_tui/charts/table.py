"""Tables: numbers to the right, text to the left, as many whole columns as the width holds.

Owns the chart kind `table`. A number is shown whole or not at all; text gives way first, then whole columns, which are
counted; every cut has a sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import ELLIPSIS, fit, fit_middle, text_width
from dflash_tui.charts.format import ABSENT, column, number
from dflash_tui.charts.options import NO_OPTIONS, Options
from dflash_tui.charts.series import Axes, Rows, to_number
from dflash_tui.charts.sparks import spark

_GAP = 2
_MIN_TEXT = 6
_MIN_HEAD = 8
_SPARK = 10
_NON_FINITE = {"NaN", "Infinity", "-Infinity"}


@dataclass(slots=True)
class _Column:
    """A column as it is drawn: `width` begins as the least that makes sense and may grow to `natural`."""

    head: str
    cells: list[str]
    role: Role
    is_number: bool
    natural: int
    width: int


def draw_table(
    columns: Sequence[str],
    rows: Rows,
    axes: Axes,
    *,
    width: int,
    height: int,
    scale: str = "linear",
    unit: str | None = None,
    options: Options = NO_OPTIONS,
) -> Canvas:
    """Every column of the query, in its order. A list of numbers is drawn as a spark."""
    if not columns:
        return Canvas(width, height).note("no columns")
    num_head = 1 if height > 1 else 0
    num_rows = len(rows) if len(rows) <= height - num_head else max(0, height - num_head - 1)
    parts = [_column(name, [row[i] for row in rows[:num_rows]]) for i, name in enumerate(columns)]
    kept = _fit(parts, max(1, width))
    remark = "no rows" if not rows else f"{ELLIPSIS} {len(rows) - num_rows:,} more rows" if num_rows < len(rows) else ""
    canvas = Canvas(width, height, inked=max(_total(kept) + _sign_width(parts, kept), text_width(remark)))
    x = 0
    for part in kept:
        _draw_column(canvas, x, part, num_head, part is parts[0])
        x += part.width + _GAP
    if len(kept) < len(parts):
        canvas.write(x - _GAP + 1, 0, _more(parts, kept), Role.MUTED)
    if remark:
        canvas.write(0, num_head + num_rows, fit(remark, canvas.width), Role.MUTED)
    return canvas


def _column(name: str, values: Sequence[object]) -> _Column:
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, list) for v in present):
        sparks = [spark(list(map(to_number, v)), _SPARK) if isinstance(v, list) else ABSENT for v in values]
        return _Column(name, sparks, Role.DATA, False, max(text_width(name), _SPARK), _SPARK)
    is_number = bool(present) and all(map(_is_number, present))
    has_fractions = is_number and not all(isinstance(v, int) for v in present)
    cells = column(list(map(to_number, values))) if has_fractions else list(map(_say, values))
    width = max(map(text_width, cells), default=0)
    natural = max(width, text_width(name), 1)
    least = max(width, min(text_width(name), _MIN_HEAD), 1) if is_number else min(natural, _MIN_TEXT)
    return _Column(name, cells, Role.TEXT, is_number, natural, least)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value in _NON_FINITE
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _say(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if value is None or isinstance(value, (int, float)) else str(value)


def _fit(parts: list[_Column], width: int) -> list[_Column]:
    """The first columns that fit at their least widths, with what is left over shared out, small needs first."""
    first = parts[0]
    if not first.is_number:
        # Rows are told apart by it.
        first.width = min(first.natural, max(first.width, width // 4))
    kept = parts
    while len(kept) > 1 and _total(kept) + _sign_width(parts, kept) > width:
        kept = kept[:-1]
    room = width - _total(kept) - _sign_width(parts, kept)
    if room < 0:
        first.width = width
        return kept
    # Numbers get their heads; then the first column may take half of the width before the others share the rest.
    in_need = sorted(kept, key=lambda part: (not part.is_number, part is not first, part.natural - part.width))
    for i, part in enumerate(in_need):
        share = room if part.is_number else width // 2 - part.width if part is first else room // (len(in_need) - i)
        more = max(0, min(part.natural - part.width, share, room))
        part.width += more
        room -= more
    first.width += min(first.natural - first.width, room)
    return kept


def _more(parts: list[_Column], kept: list[_Column]) -> str:
    """How many columns are left out."""
    return f"+{len(parts) - len(kept)}" if len(kept) < len(parts) else ""


def _sign_width(parts: list[_Column], kept: list[_Column]) -> int:
    sign = _more(parts, kept)
    return 1 + len(sign) if sign else 0


def _total(parts: list[_Column]) -> int:
    return sum(part.width for part in parts) + _GAP * (len(parts) - 1)


def _draw_column(canvas: Canvas, x: int, part: _Column, num_head: int, is_first: bool) -> None:
    write = canvas.write
    if num_head:
        head = fit_middle(part.head, part.width) if part.is_number else fit(part.head, part.width)
        write(x + (part.width - text_width(head) if part.is_number else 0), 0, head, Role.LABEL)
    for y, text in enumerate(part.cells, num_head):
        if part.is_number:
            # A number that lost a digit would be another number.
            shown = text if text_width(text) <= part.width else ELLIPSIS
            role = Role.BAD if text in _NON_FINITE else Role.MUTED if text == ABSENT else part.role
            canvas.write_right(x + part.width, y, shown, role)
        else:
            role = Role.MUTED if text == ABSENT else Role.LABEL if is_first else part.role
            # The ends of names tell them apart: accuracy.short, accuracy.long.
            cut = fit_middle if is_first and " " not in text else fit
            write(x, y, cut(text, part.width), role)

"""A table for eyes: aligned columns, numbers to the right and with every digit, nothing that a terminal would obey.

Widths are those of the first rows: the first batches until SAMPLE_ROWS, then rows go out as they come, and a cell that
is wider than its column pushes the rest of its line. On a terminal the first rows are all there are (`query` limits
them), and `fit` makes them fit.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from dflash_tui.charts.cells import fit as cut
from dflash_tui.charts.cells import text_width
from dflash_tui.output.formats import Batches
from dflash_tui.output.values import is_number, texts
from dflash_tui.text import visible

SAMPLE_ROWS = 1000
NULL = "NULL"
_GAP = "  "
# What EXPLAIN answers with: a drawing of several lines.
_PLAN = ["explain_key", "explain_value"]
_MIN_TEXT = 6

Told = Callable[[str], None]


def marked(kind: str, cells: Sequence[object]) -> list[str]:
    """A column's cells for eyes: NULL is bare, a text that would read like it stands in quotes."""
    return [NULL if cell is None else told_apart(visible(cell)) for cell in texts(kind, cells)]


def told_apart(cell: str) -> str:
    """A text as a cell that no NULL and no nothing looks like."""
    return f'"{cell}"' if not cell or cell == NULL or cell[0] == '"' else cell


def table_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """Every column, as wide as it needs."""
    yield from _drawn(columns, types, batches, None, lambda notice: None)


def fitted_table(width: int, tell: Told) -> Callable[[list[str], list[str], Batches], Iterator[str]]:
    """The same within `width` cells: texts are cut, with a sign, then columns at the right left out, and told."""
    return lambda columns, types, batches: _drawn(columns, types, batches, width, tell)


def _drawn(columns: list[str], types: list[str], batches: Batches, limit: int | None, tell: Told) -> Iterator[str]:
    source = iter(batches)
    if columns == _PLAN:
        yield from (visible(f"{plan}\n", keep="\n") for batch in source for _, plan in batch)
        return
    sample: list[tuple[object, ...]] = []
    for batch in source:
        sample += batch
        if len(sample) >= SAMPLE_ROWS:
            break
    heads = list(map(visible, columns))
    numeric = list(map(is_number, types))
    cells = [marked(kind, [row[at] for row in sample]) for at, kind in enumerate(types)]
    needed = [max(map(text_width, column), default=0) for column in cells]
    widths = [max(text_width(head), need) for head, need in zip(heads, needed, strict=True)]
    if limit is not None:
        least = [need if is_num else min(w, _MIN_TEXT) for need, is_num, w in zip(needed, numeric, widths, strict=True)]
        widths = _shared(widths, least, limit)
        if len(widths) < len(columns):
            tell(f"showing {len(widths)} of {len(columns)} columns; name those you want, or --format csv has them all")
    is_cut = limit is not None

    def lines(rows: Iterator[tuple[str, ...]]) -> str:
        # The last column ends where it ends: no blanks behind it.
        return "".join(_line(row, widths, numeric, is_cut) + "\n" for row in rows)

    yield lines(chain([tuple(heads)], zip(*cells, strict=True)))
    for batch in source:
        columns_of = zip(types, zip(*batch, strict=True), strict=True)
        yield lines(zip(*(marked(kind, column) for kind, column in columns_of), strict=True))


def _line(cells: tuple[str, ...], widths: list[int], numeric: list[bool], is_cut: bool) -> str:
    parts = []
    for cell, width, is_num in zip(cells, widths, numeric, strict=False):
        shown = cut(cell, width) if is_cut and text_width(cell) > width else cell
        blank = " " * (width - text_width(shown))
        parts.append(blank + shown if is_num else shown + blank)
    return _GAP.join(parts).rstrip()


def _shared(natural: list[int], least: list[int], limit: int) -> list[int]:
    """Widths of the first columns that fit into `limit` cells; what is left over goes to small needs first."""
    num = len(natural)
    while num > 1 and sum(least[:num]) + len(_GAP) * (num - 1) > limit:
        num -= 1
    widths = least[:num]
    room = limit - sum(widths) - len(_GAP) * (num - 1)
    if room < 0:
        return [limit]
    in_need = sorted(range(num), key=lambda at: natural[at] - widths[at])
    for rank, at in enumerate(in_need):
        more = min(natural[at] - widths[at], room // (num - rank))
        widths[at] += more
        room -= more
    return widths

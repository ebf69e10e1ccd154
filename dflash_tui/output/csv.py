"""csv: NULL is an empty cell, the empty text is `""`, every other byte is as it is.

Python's writer is not used: it writes NULL and the empty text alike, and leaves a carriage return unquoted.
"""

import re
from collections.abc import Iterator
from typing import cast

from dflash_tui.output.formats import Batches
from dflash_tui.output.values import is_number, texts
from dflash_tui.text import visible

_special = re.compile(r'[",\r\n]').search


def csv_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """A header and a line a row."""
    head = ",".join(map(quoted, columns)) + "\n"
    numeric = list(map(is_number, types))
    for batch in batches:
        cells = []
        for kind, is_plain, column in zip(types, numeric, zip(*batch, strict=True), strict=True):
            cells.append(_cells(texts(kind, column), is_plain))
        yield head + "\n".join(map(",".join, zip(*cells, strict=True))) + "\n"
        head = ""
    yield head


def shown_csv_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """The same for a terminal, which must not be told anything by a cell: what it would obey is escaped."""
    for piece in csv_pieces(columns, types, batches):
        # A line end inside a cell stays one, between its quotes.
        yield visible(piece, keep="\n")


def _cells(found: list[str | None], is_plain: bool) -> list[str]:
    if None in found:
        return ["" if cell is None else cell if is_plain else quoted(cell) for cell in found]
    whole = cast(list[str], found)
    # One search through all of them: most columns need no quotes.
    return whole if is_plain or ("" not in whole and not _special("".join(whole))) else list(map(quoted, whole))


def quoted(cell: str) -> str:
    """A text as a cell."""
    if cell and not _special(cell):
        return cell
    return '"' + cell.replace('"', '""') + '"'

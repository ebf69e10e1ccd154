"""csv: NULL is an empty cell, the empty text is `""`, every other byte is as it is.

Python's writer is not used: it writes NULL and the empty text alike, and leaves a carriage return unquoted.
"""

import re
from collections.abc import Iterator

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
            found = texts(kind, column)
            cells.append([c or "" for c in found] if is_plain else ["" if c is None else quoted(c) for c in found])
        yield head + "\n".join(map(",".join, zip(*cells, strict=True))) + "\n"
        head = ""
    yield head


def shown_csv_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """The same for a terminal, which must not be told anything by a cell: what it would obey is escaped."""
    for piece in csv_pieces(columns, types, batches):
        # A line end inside a cell stays one, between its quotes.
        yield visible(piece, keep="\n")


def quoted(cell: str) -> str:
    """A text as a cell."""
    if cell and not _special(cell):
        return cell
    return '"' + cell.replace('"', '""') + '"'

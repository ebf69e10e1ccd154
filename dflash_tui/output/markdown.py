"""A table as GitHub's Markdown has it. NULL and the empty text are marked as in a table for eyes."""

import re
from collections.abc import Iterator

from dflash_tui.output.formats import Batches
from dflash_tui.output.table import NULL, told_apart
from dflash_tui.output.values import is_number, texts
from dflash_tui.text import visible

_active = re.compile(r"[\\|`*<\[~&]")


def markdown_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """A header, the line that makes a table of it, a line a row."""
    rule = "".join(" ---: |" if is_number(kind) else " --- |" for kind in types)
    head = f"{_line(map(escaped, columns))}|{rule}\n"
    for batch in batches:
        cells = [
            [NULL if cell is None else escaped(told_apart(cell)) for cell in texts(kind, column)]
            for kind, column in zip(types, zip(*batch, strict=True), strict=True)
        ]
        yield head + "".join(map(_line, zip(*cells, strict=True)))
        head = ""
    yield head


def escaped(text: str) -> str:
    """A text that Markdown shows as it is: nothing in it ends the cell, is set in italics or becomes HTML."""
    lines = text.split("\n")
    return "<br>".join(_active.sub(r"\\\g<0>", visible(line)) for line in lines)


def _line(cells: "Iterator[str] | tuple[str, ...]") -> str:
    return "| " + " | ".join(cells) + " |\n"

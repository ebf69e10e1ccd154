"""Cells of a query's answer as they are shown: a number short, a text on one line, NULL as that word."""

from typing import Any, Literal, NamedTuple

from dflash_tui.charts.format import number
from dflash_tui.output.values import is_number, texts
from dflash_tui.text import visible

NULL = "NULL"
_LINE_END = "↵"
# Nobody reads more of a cell in a table; a cell may hold megabytes.
_MOST_CHARS = 400


class Shown(NamedTuple):
    text: str
    look: Literal["number", "text", "odd", "quiet"]
    """odd: not finite, or in other ways no value of its kind. quiet: there is none."""


def shown(kind: str, cell: Any) -> Shown:
    """As it stands in the table."""
    if cell is None:
        return Shown(NULL, "quiet")
    if is_number(kind) and not isinstance(cell, str):
        text = number(cell)
        return Shown(text, "odd" if text[-1].isalpha() else "number")
    text = whole(kind, cell)[:_MOST_CHARS]
    if kind == "VARCHAR" and text in ("", NULL):
        return Shown(f'"{text}"', "quiet" if not text else "text")
    return Shown(visible(text.replace("\n", _LINE_END)), "number" if is_number(kind) else "text")


def whole(kind: str, cell: Any) -> str:
    """Every digit and every character; an empty text for NULL."""
    [text] = texts(kind, [cell])
    return text or ""

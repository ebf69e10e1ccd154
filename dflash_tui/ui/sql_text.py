"""SQL as text: its tokens, its statements, and which of them a place is in. Knows no grammar and asks no database.

A text is often unfinished where a person types: a string that does not end reaches to the end of the text.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

from dflash_tui.charts.cells import ELLIPSIS, fit, text_width
from dflash_tui.text import visible

Kind = Literal["comment", "string", "name", "number", "parameter", "word", "end", "other"]

_KEYWORDS = """
all and any as asc between by case cast collate cross cube desc describe distinct else end escape except exists explain
false filter first following for from full glob group grouping having if ilike in inner intersect interval is join last
lateral left like limit natural not null nulls offset on or order outer over partition pivot positional preceding
qualify range recursive replace right rollup row rows select semi sets similar tablesample then to true try_cast
unbounded union unpivot using values when where window with within
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<string> '(?:[^']|'')*(?:'|\Z) | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z) )
  | (?P<name> "(?:[^"]|"")*(?:"|\Z) )
  | (?P<number> \b\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)? )
  | (?P<parameter> \$\w+ )
  | (?P<word> [^\W\d]\w* )
  | (?P<end> ; )
  | (?P<other> \S )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    kind: Kind
    start: int
    stop: int
    text: str


class Statement(NamedTuple):
    """One statement of a text, with the comments before it; `start` is where `text` begins."""

    start: int
    text: str


def tokens(text: str) -> Iterator[Token]:
    """Everything but blanks, in order."""
    for found in _TOKEN.finditer(text):
        yield Token(cast(Kind, found.lastgroup), found.start(), found.end(), found[0])


def statements(text: str) -> list[Statement]:
    """Those that hold more than comments."""
    found: list[Statement] = []
    start: int | None = None
    is_more = False
    for token in tokens(text):
        if token.kind == "end":
            if start is not None and is_more:
                found.append(Statement(start, text[start : token.start]))
            start, is_more = None, False
        else:
            start = token.start if start is None else start
            is_more = is_more or token.kind != "comment"
    if start is not None and is_more:
        found.append(Statement(start, text[start:].rstrip()))
    return found


def statement_at(text: str, place: int) -> Statement | None:
    """The one that `place` is in or right behind, with its semicolon; between two of them, the one before."""
    found = statements(text)
    return next((one for one in reversed(found) if one.start <= place), found[0] if found else None)


def parameters(text: str) -> list[Token]:
    """Where `$names` stand, without their dollar."""
    return [token._replace(text=token.text[1:]) for token in tokens(text) if token.kind == "parameter"]


def line_and_column(text: str, place: int) -> tuple[int, int]:
    """Of an offset, both from 0."""
    before = text[:place]
    return before.count("\n"), len(before) - (before.rfind("\n") + 1)


def word_at(text: str, place: int) -> str:
    """What is there of the token that `place` is in; empty between two."""
    return next((token.text[place - token.start :] for token in tokens(text) if token.start <= place < token.stop), "")


def pointed_at(text: str, place: int, width: int) -> tuple[str, str]:
    """The line that `place` is in, as much of it around there as `width` cells hold, and carets under the word."""
    row, column = line_and_column(text, place)
    line = text.split("\n")[row]
    word = word_at(text, place).split("\n")[0] or line[column : column + 1]
    before, rest = visible(line[:column]), visible(line[column:])
    while before and text_width(before) + min(text_width(rest), width // 2) > width - len(ELLIPSIS):
        before = before[1:]
    before = before if before == visible(line[:column]) else ELLIPSIS + before
    carets = "^" * max(1, min(text_width(visible(word)), width - text_width(before)))
    return fit(before + rest, width), " " * text_width(before) + carets

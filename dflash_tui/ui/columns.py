"""Columns of a list: a title, a width, what each says of a row, and which give way first. Draws nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar

GAP = 1

R = TypeVar("R")


class Cell(NamedTuple):
    """`look` is a component class of the list."""

    text: str
    look: str = ""


@dataclass(frozen=True)
class Column(Generic[R]):
    """`rank` 0 stays always; the highest goes first. A column with `takes_rest` shares out what is left over."""

    title: str
    width: int
    cell: Callable[[R], Cell]
    align: Literal["left", "right"] = "left"
    rank: int = 0
    takes_rest: bool = False
    widest: int = 0
    """It may grow to this where its rows need it, in the order of `growth`, before the rest is shared out."""
    growth: int = 0
    sort_key: Callable[[R], Any] | None = None
    """What rows may be ordered by; None of a row: it has no such thing."""
    falls: bool = False
    """The greatest first, unless that is reversed."""


@lru_cache(maxsize=64)
def fitted(wanted: tuple[Column[Any], ...], width: int, needs: tuple[int, ...]) -> list[tuple[Column[Any], int]]:
    """Those of `wanted` that fit in `width` cells, and how wide each is. Asked for every line that is drawn.

    `needs` are the cells that the rows of each take.
    """
    most = {column.title: min(column.widest, need) for column, need in zip(wanted, needs, strict=True)}
    columns = list(wanted)
    while _taken(columns) > width and (worst := max(columns, key=lambda column: column.rank)).rank > 0:
        columns.remove(worst)
    left = max(0, width - _taken(columns))
    widths = {column.title: column.width for column in columns}
    for column in sorted(columns, key=lambda column: column.growth):
        more = min(left, max(0, most[column.title] - column.width))
        widths[column.title] += more
        left -= more
    return [(column, widths[column.title] + (left if column.takes_rest else 0)) for column in columns]


def _taken(columns: Sequence[Column[Any]]) -> int:
    return sum(column.width + GAP for column in columns) - GAP

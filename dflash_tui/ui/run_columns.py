"""The columns of the list of runs: what each says of a run, how wide it is, and which give way first. Draws nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dflash_tui.runs import Run
from dflash_tui.text import duration, number, visible
from dflash_tui.ui.states import glyph, silence_s, state_words, tone_class

GAP = 1


class Figures(NamedTuple):
    """What the list says of a run's rows: newest median loss and speed, and the loss over the whole run."""

    loss_p50: float | None = None
    tok_per_sec: float | None = None
    losses: tuple[float | None, ...] = ()


class RunRow(NamedTuple):
    """A run as the list knows it; `since_s` is how long ago the store was asked."""

    run: Run
    figures: Figures
    since_s: float


class Cell(NamedTuple):
    text: str
    look: str = ""


@dataclass(frozen=True)
class Column:
    """`rank` 0 stays always; the highest goes first. A column with `takes_rest` shares out what is left over."""

    title: str
    width: int
    cell: Callable[[RunRow], Cell]
    align: Literal["left", "right"] = "left"
    rank: int = 0
    takes_rest: bool = False
    widest: int = 0
    """It may grow to this, in the order of `growth`, before the rest is shared out."""
    growth: int = 0


def fitted(width: int) -> list[tuple[Column, int]]:
    """The columns that fit in `width` cells, and how wide each is."""
    columns = list(COLUMNS)
    while _taken(columns) > width and (worst := max(columns, key=lambda column: column.rank)).rank > 0:
        columns.remove(worst)
    left = max(0, width - _taken(columns))
    widths = {column.title: column.width for column in columns}
    for column in sorted(columns, key=lambda column: column.growth):
        more = min(left, max(0, column.widest - column.width))
        widths[column.title] += more
        left -= more
    return [(column, widths[column.title] + (left if column.takes_rest else 0)) for column in columns]


def _taken(columns: list[Column]) -> int:
    return sum(column.width + GAP for column in columns) - GAP


def _state(row: RunRow) -> Cell:
    return Cell(f"{glyph(row.run.state)} {state_words(row.run)}", tone_class(row.run.state))


def _name(row: RunRow) -> Cell:
    return Cell(visible(row.run.name), "runs--name")


def _host(row: RunRow) -> Cell:
    return Cell(visible(row.run.host) if row.run.host else "-")


def _step(row: RunRow) -> Cell:
    run = row.run
    if run.step is None:
        return Cell("-", "runs--quiet")
    if not run.total_steps:
        return Cell(f"{run.step:,}")
    return Cell(f"{run.step:,}/{run.total_steps:,} {run.step / run.total_steps:4.0%}")


def _loss(row: RunRow) -> Cell:
    return Cell(number(row.figures.loss_p50, 3))


def _speed(row: RunRow) -> Cell:
    return Cell(number(row.figures.tok_per_sec, 3))


def _age(row: RunRow) -> Cell:
    run = row.run
    if (silent_s := silence_s(run, row.since_s)) is not None:
        return Cell(f"no contact {duration(silent_s)}", "tone--warn")
    return Cell(duration(None if run.age_s is None else run.age_s + row.since_s), "runs--quiet")


SPARK = Column("LOSS", 10, lambda row: Cell(""), rank=6)
COLUMNS = (
    Column("STATE", 13, _state, widest=20, growth=2),
    Column("RUN", 18, _name, takes_rest=True, widest=26, growth=3),
    Column("HOST", 10, _host, rank=5, widest=16, growth=4),
    Column("STEP", 18, _step, "right", rank=1),
    Column("LOSS p50", 8, _loss, "right", rank=3),
    Column("TOK/S", 7, _speed, "right", rank=4),
    Column("AGE", 9, _age, "right", rank=2, widest=17, growth=1),
    SPARK,
)

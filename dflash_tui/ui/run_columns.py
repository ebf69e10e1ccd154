"""The columns of the list of runs: what each says of a run. Draws nothing."""

from typing import NamedTuple

from dflash_tui.output.findings import SIGNS
from dflash_tui.runs import Run
from dflash_tui.text import duration, number_within, visible
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.states import glyph, liveliness, silence_s, state_words, tone_class

PINNED = "★"
NOT_YET = "…"
_STEP_CELLS = 18
_LOSS_CELLS = 8
_SPEED_CELLS = 7
_FOUND_CELLS = 7


class Figures(NamedTuple):
    """What the list says of a run's rows: newest median loss and speed, and the loss over the whole run."""

    loss_p50: float | None = None
    tok_per_sec: float | None = None
    losses: tuple[float | None, ...] = ()


class Verdict(NamedTuple):
    """What the checks found when the run was in `state` and at `step`, at `at` by the clock."""

    state: str
    step: int | None
    at: float
    counts: tuple[int, int] | None = None
    """Critical findings and warnings; None where they could not be had."""

    @property
    def badge(self) -> str:
        """✖ 1 ▲ 2; a tick without a warning."""
        if self.counts is None:
            return ""
        counted = zip((SIGNS["critical"], SIGNS["warning"]), self.counts, strict=True)
        return " ".join(f"{sign} {count}" for sign, count in counted if count) or "✓"


class RunRow(NamedTuple):
    """A run as the list knows it; `since_s` is how long ago the store was asked, `mark` the letter it is marked by.

    `ending` is that of its id, where another run has its name.
    """

    run: Run
    figures: Figures = Figures()
    since_s: float = 0.0
    mark: str = ""
    is_pinned: bool = False
    verdict: Verdict | None = None
    ending: str = ""


def _state(row: RunRow) -> Cell:
    return Cell(f"{glyph(row.run.state)} {state_words(row.run)}", tone_class(row.run.state))


def _name(row: RunRow) -> Cell:
    name = f"{row.run.name} {row.ending}" if row.ending else row.run.name
    return Cell(f"{PINNED} " * row.is_pinned + visible(name), "list--name")


def _host(row: RunRow) -> Cell:
    return Cell(visible(row.run.host) if row.run.host else "-")


def _step(row: RunRow) -> Cell:
    run = row.run
    if run.step is None:
        return Cell("-", "list--quiet")
    if not run.total_steps:
        return Cell(number_within(run.step, _STEP_CELLS))
    return Cell(_progress(run.step, run.total_steps))


def _progress(step: int, total_steps: int) -> str:
    """22,698/69,000  33%; of what is too long for that the steps give way, in thousands or millions."""
    share = 100 * step / total_steps
    percent = f"{share:3.0f}%" if share < 10_000 else ">9999%"
    for cells in (_STEP_CELLS, 7, 6, 5):
        text = f"{number_within(step, cells)}/{number_within(total_steps, cells)} {percent}"
        if len(text) <= _STEP_CELLS:
            break
    return text


def _loss(row: RunRow) -> Cell:
    return Cell(number_within(row.figures.loss_p50, _LOSS_CELLS, 3))


def _speed(row: RunRow) -> Cell:
    return Cell(number_within(row.figures.tok_per_sec, _SPEED_CELLS, 3))


def _found(row: RunRow) -> Cell:
    if row.verdict is None:
        # Without a step there is nothing to check.
        return Cell("" if row.run.step is None else NOT_YET, "list--quiet")
    if row.verdict.counts is None:
        return Cell("")
    badge = row.verdict.badge
    if len(badge) > _FOUND_CELLS:
        badge = badge.replace(" ", "")
    num_critical, num_warnings = row.verdict.counts
    return Cell(badge, "tone--bad" if num_critical else "tone--warn" if num_warnings else "list--quiet")


def _counts(row: RunRow) -> tuple[int, int] | None:
    return row.verdict.counts if row.verdict else None


def _age(row: RunRow) -> Cell:
    run = row.run
    if (silent_s := silence_s(run, row.since_s)) is not None:
        return Cell(f"silent {duration(silent_s)}", "tone--warn")
    return Cell(duration(None if run.age_s is None else run.age_s + row.since_s), "list--quiet")


SPARK: Column[RunRow] = Column("LOSS", 9, lambda row: Cell(""), rank=6)
COLUMNS: tuple[Column[RunRow], ...] = (
    Column("STATE", 13, _state, widest=20, growth=3, sort_key=lambda row: liveliness(row.run.state), falls=True),
    Column("RUN", 18, _name, takes_rest=True, widest=26, growth=2, sort_key=lambda row: row.run.name.lower()),
    Column("HOST", 9, _host, rank=5, widest=16, growth=4, sort_key=lambda row: row.run.host),
    Column("STEP", _STEP_CELLS, _step, "right", rank=1, sort_key=lambda row: row.run.step, falls=True),
    Column("LOSS p50", _LOSS_CELLS, _loss, "right", rank=3, sort_key=lambda row: row.figures.loss_p50),
    Column("TOK/S", _SPEED_CELLS, _speed, "right", rank=4, sort_key=lambda row: row.figures.tok_per_sec, falls=True),
    Column("FOUND", _FOUND_CELLS, _found, rank=5, sort_key=_counts, falls=True),
    Column("AGE", 9, _age, "right", rank=2, widest=14, growth=1, sort_key=lambda row: row.run.age_s),
    SPARK,
)

"""What the Run screen asks of the store, all in one go, and what it makes of the answer. Blocking; draws nothing."""

from collections.abc import Iterable
from typing import NamedTuple

from dflash_tui.charts import Mark
from dflash_tui.charts.course import Course
from dflash_tui.runs import Run, RunState, Stretches, Window
from dflash_tui.store.base import AttemptRow, PanelResult, RunDetail, Store
from dflash_tui.store.tail import last_words
from dflash_tui.ui import findings
from dflash_tui.ui.course import ask_course
from dflash_tui.ui.panel_text import figure
from dflash_tui.ui.view import Extent


class Question(NamedTuple):
    """What the screen wants to know now; `names` None means every panel."""

    run_id: str
    names: list[str] | None
    window: Window
    stretches: Stretches | None
    axis: str
    buckets: int
    wants_eta: bool


class Dashboard(NamedTuple):
    detail: RunDetail
    panels: list[PanelResult]
    course: Course | None
    """Where steps lie on the axis that was asked for; None for steps, and where the log does not tell."""
    clock: Course | None
    """Where they lie in time, if a panel is over that."""
    eta_s: float | None
    words: str | None
    """What its host said of its state; of a run that failed or has logged no step what its trainer said last."""


def ask_dashboard(ask: Question, store: Store) -> Dashboard:
    """All that the screen shows. Raises DflashError."""
    detail = store.detail(ask.run_id)
    panels = store.report(ask.run_id, ask.names, ask.window, ask.buckets, ask.stretches)

    def course_over(axis: str) -> Course | None:
        return ask_course(store, ask.run_id, ask.window, axis, ask.buckets)

    course = None if ask.axis == "step" else course_over(ask.axis)
    is_timed = any(panel.state == "rows" and panel.axes.get("x") == "time" for panel in panels)
    clock = (course if ask.axis == "time" else course_over("time")) if is_timed else None
    # Over the whole run: in a window of old steps the time left means nothing.
    budget = store.report(ask.run_id, ["budget"], Window(), 1) if ask.wants_eta else []
    is_mute = detail.run.host is not None and (detail.run.step is None or detail.run.state == RunState.FAILED)
    words = last_words(ask.run_id) if is_mute else None
    if detail.run.state != RunState.FAILED:
        words = detail.note or words
    return Dashboard(detail, panels, course, clock, next((figure(result, "eta_s") for result in budget), None), words)


def extent_of(panels: Iterable[PanelResult]) -> Extent | None:
    """From the first to the last step that any chart over steps has a row of."""
    steps = [
        row[result.columns.index("step")]
        for result in panels
        if result.state == "rows" and result.axes.get("x") == "step" and "step" in result.columns
        for row in (result.rows[0], result.rows[-1])
    ]
    known = [step for step in steps if isinstance(step, (int, float))]
    return Extent(min(known), max(known)) if known else None


def first_panels(run: Run) -> tuple[str, ...]:
    """What a first look needs: of our own trainer its acceptance, of any other log its vital signs."""
    sixth, seventh = ("acceptance", "vitals") if run.kind == "train" else ("vitals", "acceptance")
    return ("loss", "grad_norm", findings.NAME, sixth, "length_buckets", "throughput", "lr", seventh)


def resume_marks(attempts: Iterable[AttemptRow]) -> tuple[Mark, ...]:
    """Where the attempts after the first began."""
    return tuple(
        Mark(attempt.first_step, f"attempt {attempt.attempt}")
        for attempt in attempts
        if attempt.attempt > 1 and attempt.first_step is not None
    )

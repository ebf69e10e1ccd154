"""What the tables know of a run's log, line by line: where attempts begin, gaps, rows that no longer count, rejects.

Small answers to questions in `sql/screens/`; a line is (generation, line_no), both from 1, as in the tables.
"""

from dataclasses import dataclass, field

from dflash_tui.store.base import Store
from dflash_tui.store.screens import ask_screen
from dflash_tui.text import duration

MAX_REJECTS = 10_000


@dataclass(frozen=True, slots=True)
class LogNotes:
    """By generation: what stands above a line, stretches of rows that do not count, why a line is no record."""

    above: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    void: dict[int, list[range]] = field(default_factory=dict)
    rejects: dict[int, dict[int, str]] = field(default_factory=dict)
    num_rejects: int = 0


def ask_log_notes(run_id: str, store: Store) -> LogNotes:
    """Blocking; raises DflashError. A second on a run of a million rows."""
    notes = LogNotes(num_rejects=sum(count for (count,) in ask_screen(store, "log_rejects_count", {"run": run_id})))
    for generation, line_no, *what in ask_screen(store, "log_marks", {"run": run_id}):
        notes.above.setdefault(generation, []).append((line_no, _words(*what)))
    for generation, first, last in ask_screen(store, "log_voids", {"run": run_id}):
        notes.void.setdefault(generation, []).append(range(first, last + 1))
    if notes.num_rejects:
        params = {"run": run_id, "limit": MAX_REJECTS}
        for generation, line_no, reason in ask_screen(store, "log_rejects", params):
            notes.rejects.setdefault(generation, {})[line_no] = reason
    return notes


def ask_line_of_step(run_id: str, step: int, store: Store) -> tuple[int, int, int] | None:
    """Generation, line and step of the first row that counts at `step` or later. Blocking; raises DflashError."""
    rows = ask_screen(store, "log_step", {"run": run_id, "step": step})
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def ask_trouble(run_id: str, generation: int, line_no: int, by: int, store: Store) -> tuple[int, int] | None:
    """The nearest line behind this one (before it, for a `by` of -1) that is a reject, a warning, or not finite."""
    rows = ask_screen(store, "log_trouble", {"run": run_id, "generation": generation, "line_no": line_no, "by": by})
    return (rows[0][0], rows[0][1]) if rows else None


def _words(kind: str, attempt: int, step: int | None, before: int | None, seconds: float | None) -> str:
    if kind == "attempt":
        return f"attempt {attempt}" + ("" if step is None else f" from step {step:,}")
    parts = []
    if step is not None and before is not None:
        parts.append(f"no row between step {before:,} and {step:,}")
    if seconds is not None:
        parts.append(f"{duration(seconds)} without a row")
    return "gap: " + ", ".join(parts)

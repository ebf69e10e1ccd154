"""The one line above a dashboard: how the run is, how far, until when, where, and how old that knowledge is.

Owns what gives way when the line is narrow. Asks nothing.
"""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.cells import fit, text_width
from dflash_tui.output.findings import SIGNS
from dflash_tui.runs import Run, RunState
from dflash_tui.text import duration, visible
from dflash_tui.ui.cells import ink, line
from dflash_tui.ui.states import TONE_CLASSES, glyph, silence_s, state_words, tone_class

GAP = "  "
# A name keeps this many cells while there is anything left to drop; parts of this rank and above go before it is cut.
NAME_CELLS = 20
DISPENSABLE = 6
BAR_CELLS = 16
# A dashboard that is looked at asks every 5 s at least: what is older was left for a while, and may be another now.
OLD_S = 15.0


class Part(NamedTuple):
    """A part of the line; those of the highest `rank` are dropped first, rank 0 never."""

    text: str
    look: str
    rank: int = 0
    is_joined: bool = False
    """The next part follows without a gap."""


class StatusLine(Widget):
    """Shows one run; its ages count on between two looks at the store."""

    COMPONENT_CLASSES: ClassVar[set[str]] = TONE_CLASSES | {
        "status--name",
        "status--quiet",
        "status--bar",
        "status--window",
    }

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen_at = clock()
        self._run: Run | None = None
        self._run_name: str | None = None
        self._eta_s: float | None = None
        self._sights: Sequence[str] = ()
        self._badge = ""

    def on_mount(self) -> None:
        self.set_interval(1, self.refresh)

    def show(self, run: Run, seen_at: float, eta_s: float | None, sights: Sequence[str] = (), badge: str = "") -> None:
        """`run` and the time left are as of `seen_at` by the clock; `sights` is what the panels look at if it is not
        the whole run, `badge` how much the checks found."""
        self._run, self._seen_at, self._eta_s, self._sights, self._badge = run, seen_at, eta_s, sights, badge
        self.refresh()

    def forget(self, name: str | None) -> None:
        """Show nothing of a run but its name; without one, that there is none."""
        self._run, self._run_name = None, name
        self.refresh()

    def render_line(self, y: int) -> Strip:
        ground = self.rich_style
        if self._run is None:
            name, look = (visible(self._run_name), "status--name") if self._run_name else ("no run", "status--quiet")
            return line([(f" {name}", ink(self, look))], self.size.width, ground)
        parts = status_parts(self._run, self._eta_s, self._sights, self._clock() - self._seen_at, self._badge)
        pieces = [(" ", ground)]
        for part in fitted(parts, self.size.width - 2):
            pieces += [(part.text, ink(self, part.look)), ("" if part.is_joined else GAP, ground)]
        return line(pieces[:-1], self.size.width, ground)


def status_parts(run: Run, eta_s: float | None, sights: Sequence[str], since_s: float, badge: str = "") -> list[Part]:
    """All that can be said of a run, `since_s` after the store was asked: its state first, then its name."""
    is_old = since_s > OLD_S
    state, tone = f"{glyph(run.state)} {state_words(run)}", tone_class(run.state)
    if is_old:
        state, tone = f"{state} as of {duration(since_s)} ago", "tone--warn"
    parts = [
        Part(state, tone),
        Part(visible(run.name), "status--name"),
        *([Part(badge, "tone--bad" if SIGNS["critical"] in badge else "tone--warn")] if badge else []),
        Part(step_words(run), "status--quiet", 1),
    ]
    if run.step is not None and run.total_steps:
        done = min(1.0, run.step / run.total_steps)
        cells = round(done * BAR_CELLS)
        parts.append(Part("━" * cells, "status--bar", 5, is_joined=True))
        parts.append(Part("─" * (BAR_CELLS - cells), "status--quiet", 5))
        parts.append(Part(f"{done:.0%}", "status--name", 2))
    if eta_s is not None and run.state == RunState.RUNNING and not is_old:
        parts.append(Part(f"ETA {duration(max(0.0, eta_s - since_s))}", "status--quiet", 3))
    if run.host:
        parts.append(Part(visible(run.host), "status--quiet", 6))
    if run.attempt and run.attempt > 1:
        parts.append(Part(f"attempt {run.attempt}", "status--quiet", 7))
    parts += [Part(words, "status--window") for words in sights if words]
    if (silent_s := silence_s(run, since_s)) is not None:
        parts.append(Part(f"no contact for {duration(silent_s)}", "tone--warn"))
    elif run.no_contact_s is not None:
        parts.append(Part(f"seen {duration(run.no_contact_s + since_s)} ago", "status--quiet", 4))
    if run.age_s is not None:
        parts.append(Part(f"age {duration(run.age_s + since_s)}", "status--quiet", 8))
    return parts


def step_words(run: Run) -> str:
    """step 22,698/69,000, as far as known."""
    if run.step is None:
        return "no step yet"
    return f"step {run.step:,}/{run.total_steps:,}" if run.total_steps else f"step {run.step:,}"


def fitted(parts: list[Part], width: int) -> list[Part]:
    """The parts that fit in `width` cells: dispensable ones go, then the name is cut, then the others go by rank."""
    while (excess := _width(parts) - width) > 0:
        worst = max(part.rank for part in parts)
        state, name, *others = parts
        room = text_width(name.text) - excess
        if worst < DISPENSABLE and (room >= NAME_CELLS or worst == 0):
            return [state, name._replace(text=fit(name.text, max(room, 4))), *others]
        parts = [part for part in parts if part.rank != worst]
    return parts


def _width(parts: list[Part]) -> int:
    return sum(text_width(part.text) + (0 if part.is_joined else len(GAP)) for part in parts) - len(GAP)

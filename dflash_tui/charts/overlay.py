"""Several runs in one plot, each with its own x, and figures of others to hold them against.

Owns how runs are told apart: a letter stands on each line and before its name, beside the pattern and the role. What
is drawn of one run alone stands in `line`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from dflash_tui.charts.canvas import Canvas, Role
from dflash_tui.charts.cells import fit, fit_middle, text_width
from dflash_tui.charts.dots import DASHED, DOTTED, PATTERN_SAMPLES, SOLID
from dflash_tui.charts.frame import Frame, draw_axes, lay_out
from dflash_tui.charts.line import draw_series
from dflash_tui.charts.marks import LEVEL, cross_out, draw_level, point_beyond
from dflash_tui.charts.options import Level
from dflash_tui.charts.scale import fit_scale, inliers
from dflash_tui.charts.series import sort_out
from dflash_tui.charts.tally import Tally

MAX_TRACES = 4
_LOOKS = ((Role.DATA, SOLID), (Role.SECOND, DOTTED), (Role.THIRD, DASHED), (Role.MARK, DOTTED))
_OTHERS = (Role.MUTED, DOTTED)
_GAP = "  "
_SIGNS_A_TRACE = 3
_MIN_ROWS_FOR_LEGEND = 3
_MIN_NAME = 6
_MIN_BARE_NAME = 3

# Where a part of the legend stands, what it says, and how much of it has to be seen.
_Entry = tuple[int, int, str, Role, int]


@dataclass(frozen=True, slots=True)
class Trace:
    """One line. `sign` is one cell; `name` stands behind it in the legend, and `figure`, which is not cut.

    `is_other`: no run, figures of others.
    """

    sign: str
    name: str
    xs: Sequence[float | None]
    values: Sequence[float | None]
    is_other: bool = False
    figure: str = ""


def draw_overlay(
    traces: Sequence[Trace],
    *,
    width: int,
    height: int,
    scale: str = "linear",
    x_name: str = "step",
    x_scale: str = "linear",
    unit: str | None = None,
    levels: Sequence[Level] = (),
) -> Canvas:
    """At most MAX_TRACES runs. The axes hold all levels, and of each trace what is not far outside the rest of it: that
    ends at the edge of a linear axis, with a mark and a count. A log axis has no place for zero, nor for less.
    """
    canvas = Canvas(width, height)
    canvas.tally = tally = Tally()
    drawn = [_cleaned(trace, scale, x_scale, tally) for trace in traces]
    x = fit_scale(x_scale, [x for xs, _ in drawn for x in xs])
    known = [[value for value in values if value is not None] for _, values in drawn]
    seen = [value for values in known for value in (inliers(values) if scale == "linear" else values)]
    y = fit_scale(scale, [*seen, *(level.value for level in levels)]) if seen else None
    if x is None or y is None:
        fates = tally.fates()
        return canvas.note(f"nothing to draw: {fates}" if fates else "no rows")
    tally.num_clipped = sum(not y.low <= value <= y.high for values in known for value in values)
    looks = _looks(traces)
    levels = [level for level in levels if y.shows(level.value)]
    num_head_rows = _draw_legend(canvas, traces, looks, levels, unit)
    frame = lay_out(canvas, x, y, num_head_rows, [level.value for level in levels])
    draw_axes(frame, x_name)
    for level in levels:
        draw_level(frame, level.value)
    # The first last: it lies on top.
    for (xs, values), (role, pattern) in reversed(list(zip(drawn, looks, strict=True))):
        draw_series(frame, frame.dots_across(xs), values, role, pattern)
        if tally.num_clipped:
            point_beyond(frame, xs, values)
    for trace, (xs, _) in zip(traces, drawn, strict=True):
        cross_out(frame, _non_finite_xs(trace, xs))
    _draw_signs(frame, traces, drawn, looks)
    return canvas


def _cleaned(trace: Trace, scale: str, x_scale: str, tally: Tally) -> tuple[list[float], list[float | None]]:
    pairs = [
        (x, value)
        for x, value in zip(trace.xs, trace.values, strict=True)
        if x is not None and math.isfinite(x) and (x_scale != "log" or x > 0)
    ]
    tally.num_without_x += len(trace.xs) - len(pairs)
    return [x for x, _ in pairs], sort_out([value for _, value in pairs], scale == "log", tally)


def _non_finite_xs(trace: Trace, xs: Sequence[float]) -> list[float]:
    shown = set(xs)
    return [
        x
        for x, value in zip(trace.xs, trace.values, strict=True)
        if x in shown and value is not None and not math.isfinite(value)
    ]


def _looks(traces: Sequence[Trace]) -> list[tuple[Role, int]]:
    own = iter(_LOOKS)
    return [_OTHERS if trace.is_other else next(own, _LOOKS[-1]) for trace in traces]


def _draw_legend(
    canvas: Canvas,
    traces: Sequence[Trace],
    looks: Sequence[tuple[Role, int]],
    levels: Sequence[Level],
    unit: str | None,
) -> int:
    """Who is who, in as many rows as that takes and at most a third of the canvas. Returns how many.

    Where that is too few all names become shorter, then the figures go, so that no run is lost.
    """
    max_rows = canvas.height // _MIN_ROWS_FOR_LEGEND
    if not max_rows:
        return 0

    def told(name_cells: int, *, has_figures: bool) -> list[_Entry]:
        parts = [(unit, Role.LABEL, 0)] if unit else []
        for trace, (role, pattern) in zip(traces, looks, strict=True):
            words = [trace.sign, PATTERN_SAMPLES[pattern][:2], fit_middle(trace.name, name_cells)]
            text = " ".join(words + [trace.figure] * (has_figures and bool(trace.figure)))
            parts.append((text, role, text_width(text)))
        parts += [(f"{LEVEL * 2} {level.name}", Role.TEXT, _MIN_NAME) for level in levels]
        if notes := canvas.tally.notes():
            parts.append((notes, Role.BAD, _MIN_NAME))
        return _placed(parts, canvas.width, max_rows)

    longest = min(canvas.width, max(text_width(trace.name) for trace in traces))
    whole = told(longest, has_figures=True)
    shorter = (told(n, has_figures=True) for n in range(longest - 1, _MIN_NAME - 1, -1))
    bare = (told(n, has_figures=False) for n in range(longest, _MIN_BARE_NAME - 1, -1))
    fitting = (
        one for one in chain([whole], shorter, bare) if all(x + least <= canvas.width for x, _, _, _, least in one)
    )
    placed = next(fitting, whole)
    for x, y, text, role, _ in placed:
        canvas.write(x, y, fit(text, canvas.width - x), role)
    return placed[-1][1] + 1


def _placed(parts: Sequence[tuple[str, Role, int]], width: int, max_rows: int) -> list[_Entry]:
    """One part after the other, in rows of `width`; what is too much stands beyond the end of the last."""
    placed: list[_Entry] = []
    x, y = 0, 0
    for text, role, least in parts:
        if x and x + text_width(text) > width and y + 1 < max_rows:
            x, y = 0, y + 1
        placed.append((x, y, text, role, least))
        x += text_width(text) + len(_GAP)
    return placed


def _draw_signs(
    frame: Frame,
    traces: Sequence[Trace],
    drawn: Sequence[tuple[list[float], list[float | None]]],
    looks: Sequence[tuple[Role, int]],
) -> None:
    """Each letter a few times on its line, never two at one x, and always at its end; the first trace's on top."""
    num = len(traces) * _SIGNS_A_TRACE
    place_y = frame.y.placer(4 * frame.height)
    for i in reversed(range(len(traces))):
        xs, values = drawn[i]
        there = [(x, value) for x, value in zip(xs, values, strict=True) if value is not None]
        if not there:
            continue
        columns = frame.columns_of(x for x, _ in there)
        wanted = [
            frame.left + (2 * (k * len(traces) + i) + 1) * frame.width // (2 * num) for k in range(_SIGNS_A_TRACE)
        ]
        for column in [*wanted, columns[-1]]:
            nearest = min(range(len(there)), key=lambda j: abs(columns[j] - column))
            if abs(columns[nearest] - column) <= 1:
                row = frame.bottom - place_y(there[nearest][1]) // 4
                frame.canvas.put(columns[nearest], row, traces[i].sign, looks[i][0])

"""One panel on the screen: its frame, and its answer drawn, or a sentence that says why there is none.

Owns how an answer of a given size is drawn, cached until the answer, the size or the style changes. Asks nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from dflash_tui.charts import Canvas, ChartError, Mark, Options, Role, draw
from dflash_tui.charts.cells import text_width
from dflash_tui.charts.course import Course, Moved
from dflash_tui.charts.format import number
from dflash_tui.charts.marks import CURSOR
from dflash_tui.charts.reading import read_at
from dflash_tui.charts.smoothing import LEVELS
from dflash_tui.references import Reference
from dflash_tui.store.base import PanelResult
from dflash_tui.text import duration, visible
from dflash_tui.ui.chart import ChartWidget
from dflash_tui.ui.held import HELD, held_against
from dflash_tui.ui.view import Extent

TABLES = ("table", "stat")
LINES = ("line", "band")
LONG_FORM = ["metric", "stat", "value"]
ROOMY_TABLE_CELLS = 72
SEPARATOR = " · "
GAP = "  "


class Sight(NamedTuple):
    """What all panels of a dashboard share. Marks, limits and cursor are steps; `course` is where these lie instead.

    `reference` is what those panels are held against that show a figure of it.
    """

    marks: tuple[Mark, ...] = ()
    limits: Extent | None = None
    cursor: float | None = None
    course: Course | None = None
    reference: Reference | None = None
    found: Mapping[str, tuple[Mark, ...]] = {}
    """What checks found in the figures of a panel, by its name."""
    clock: Course | None = None
    """Where the steps lie in time, for a chart that is over that whatever the others are over."""


NO_SIGHT = Sight()


class Panel(ChartWidget, can_focus=True):
    """Shows what `show` was given last."""

    is_asked: ClassVar[bool] = True
    """Whether its answer is one of the store's panels."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_rows(1)", "down", show=False, tooltip="Scroll the table of this panel."),
        Binding("up,k", "scroll_rows(-1)", "up", show=False, tooltip="Scroll the table of this panel."),
        Binding("g,home", "scroll_rows(-1000000)", "top", show=False, tooltip="To the table's first or last row."),
        Binding("G,end", "scroll_rows(1000000)", "bottom", show=False, tooltip="To the table's first or last row."),
    ]

    class Resized(Message):
        """The panel has another size: another number of points fits."""

    @dataclass
    class Pointed(Message):
        """A person pointed at a step; with `zoom`, to see so many times as many steps around it."""

        step: float
        zoom: float | None = None

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.result: PanelResult | None = None
        self._smoothing = 0.0
        self._first_row = 0
        self._sight = NO_SIGHT
        self._moved: Moved | None = None
        self._is_past = False
        self._titles: tuple[str, str, int, bool] | None = None

    @property
    def own_scale(self) -> Literal["linear", "log"]:
        return self.result.scale if self.result else "linear"

    @property
    def has_scale(self) -> bool:
        """Whether a logarithmic axis means anything here."""
        return self.result is not None and self.result.chart in (*LINES, "hist")

    @property
    def has_lines(self) -> bool:
        """Whether there is a line to smooth."""
        return self.result is not None and self.result.chart in LINES

    @property
    def steps(self) -> list[float]:
        """The steps that its chart has a row of; none where it is not over steps."""
        result = self.result
        if result is None or not self._is_over_steps or result.state != "rows":
            return []
        at = result.columns.index("step")
        return [row[at] for row in result.rows if isinstance(row[at], (int, float))]

    @property
    def _is_over_steps(self) -> bool:
        return self.result is not None and self.result.axes.get("x") == "step"

    @property
    def _clock(self) -> Course | None:
        """Where steps lie on a chart that is over time by itself."""
        return self._sight.clock if self.result is not None and self.result.axes.get("x") == "time" else None

    def show(self, result: PanelResult, sight: Sight = NO_SIGHT) -> None:
        """Draw this answer from now on; the same answer again costs nothing."""
        if result != self.result or self._is_past:
            self.result, self._moved, self._sight, self._is_past = result, None, sight, False
            self._draw_anew()
        else:
            self.look(sight)

    def outdate(self) -> None:
        """The run has gone on: what was said to be missing may be there by now."""
        if self.result is not None and self.result.state == "empty":
            self._is_past = True
            self._draw_anew()

    def look(self, sight: Sight) -> None:
        """Draw the same answer with another cursor, other limits, another axis."""
        if sight != self._sight:
            if sight.course != self._sight.course:
                self._moved = None
            is_held = self.name in HELD and sight.reference != self._sight.reference
            self._sight = sight
            if self._is_over_steps or self._clock or is_held:
                self._draw_anew()

    def smooth_more(self) -> None:
        """The next level of smoothing, or none again."""
        self._smoothing = next((level for level in LEVELS if level > self._smoothing), 0.0)
        self._draw_anew()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "scroll_rows":
            return self.num_rows > 0
        return True

    @property
    def num_rows(self) -> int:
        """The rows that it scrolls through."""
        return len(self.result.rows) if self.result is not None and self.result.chart in TABLES else 0

    def action_scroll_rows(self, by: int) -> None:
        last = max(0, self.num_rows - (self.size.height - 1))
        self._first_row = min(max(0, self._first_row + by), last)
        self._draw_anew()

    def on_resize(self) -> None:
        self._first_row = 0
        self._draw_anew()
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        self.focus(scroll_visible=False)
        if (step := self._step_at(event)) is not None:
            self.post_message(self.Pointed(step))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 0.5)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 2.0)

    def _wheel(self, event: events.MouseEvent, zoom: float) -> None:
        """Ctrl and the wheel zoom; the wheel alone scrolls the grid."""
        step = self._step_at(event) if event.ctrl else None
        if step is not None:
            event.stop()
            event.prevent_default()
            self.post_message(self.Pointed(step, zoom))

    def _step_at(self, event: events.MouseEvent) -> float | None:
        place = event.get_content_offset(self)
        if place is None or self._canvas is None or not (self._is_over_steps or self._clock):
            return None
        x, course = self._canvas.x_of(place.x), self._clock or self._sight.course
        return x if x is None or course is None else course.step(x)

    def _draw_anew(self) -> None:
        self._show_titles()
        super()._draw_anew()

    def _show_titles(self) -> None:
        """Title left, headline right: on the frame's lower edge if it has one, else behind the title."""
        result, width = self.result, self.size.width
        title = visible(result.title if result else self.name or "")
        own: list[str] = [self._scale] if result and self._scale and self._scale != result.scale else []
        own += [f"smoothed {self._smoothing:g}"] if self._smoothing else []
        title += f" ({', '.join(own)})" if own else ""
        headline = visible(self._reading() or result.headline or "") if result and result.state == "rows" else ""
        has_frame = bool(self.styles.border_bottom[0])
        if (title, headline, width, has_frame) == self._titles:
            return
        self._titles = title, headline, width, has_frame
        if has_frame:
            self.border_title = Content(title)
            self.border_subtitle = Content(fitting(headline, width - 2))
        else:
            behind = fitting(headline, width - text_width(title) - len(GAP) - 2)
            self.border_title = Content.assemble(title, (GAP + behind if behind else "", "not bold $text-muted"))
            self.border_subtitle = ""

    def _reading(self) -> str | None:
        """The values at the cursor, instead of the headline."""
        result, limits, cursor, clock = self.result, self._sight.limits, self._sight.cursor, self._clock
        if result is None or cursor is None or not (self._is_over_steps or clock):
            return None
        if limits is not None and not limits.first <= cursor <= limits.last:
            return None
        try:
            x = clock.place(cursor) if clock else cursor
            reading = read_at(result.columns, result.rows, result.axes, x)
        except ChartError:
            return None
        if reading is None:
            return f"{CURSOR} nothing yet"
        at = duration(reading.x) if clock else number(reading.x)
        return f"{CURSOR} {SEPARATOR.join([*reading.parts, f'at {at}'])}"

    def _draw(self, width: int, height: int) -> Canvas:
        result = self.result
        if result is None or self._is_past:
            return Canvas(width, height).note("reading ...")
        if result.state == "failed":
            return Canvas(width, height).note(f"✗ {visible(result.why or 'failed')}", Role.BAD)
        if result.state == "empty":
            return Canvas(width, height).note(f"no data: {visible(result.why or 'no rows')}")
        columns, rows, axes = result.columns, result.rows, result.axes
        if result.chart in TABLES:
            columns, rows = _table_part(columns, rows[self._first_row :], width)
        course = self._sight.course if self.has_lines and self._is_over_steps else None
        if course:
            self._moved = self._moved or course.along(columns, rows, axes)
            columns, rows, axes = self._moved
        return draw(
            result.chart,
            columns,
            rows,
            axes,
            width=width,
            height=height,
            scale=self.scale,
            unit=result.unit,
            options=self._options(course),
        )

    def _options(self, course: Course | None) -> Options:
        levels, targets = held_against(self.result, self._sight.reference)
        marks, limits, cursor, _, _, found, _ = self._sight
        if not self._is_over_steps:
            cursor = self._clock.place(cursor) if self._clock and cursor is not None else None
            return Options(cursor=cursor, smoothing=self._smoothing, levels=levels, targets=targets)
        marks += found.get(self.name or "", ())
        if course:
            marks = tuple(replace(mark, x=course.place(mark.x)) for mark in marks)
            limits = limits and Extent(*map(course.place, limits))
            cursor = None if cursor is None else course.place(cursor)
        return Options(marks, limits, cursor, self._smoothing, levels, targets)


def fitting(headline: str, width: int) -> str:
    """As many whole parts of a headline as `width` cells hold: a number cut short would be another number."""
    parts = headline.split(SEPARATOR)
    while parts and text_width(SEPARATOR.join(parts)) > width:
        parts.pop()
    return SEPARATOR.join(parts)


def _table_part(columns: list[str], rows: list[list[Any]], width: int) -> tuple[list[str], list[list[Any]]]:
    """What a panel of this width shows of a table: no notes, and of a long form only metric, stat and value.

    A name that only repeats the one above it is left out.
    """
    if width < ROOMY_TABLE_CELLS:
        num_shown = 3 if columns[:3] == LONG_FORM else columns.index("note") if "note" in columns else len(columns)
        columns, rows = columns[:num_shown], [row[:num_shown] for row in rows]
    if columns[:3] == LONG_FORM:
        above = [None, *(row[0] for row in rows)]
        rows = [["" if row[0] == name else row[0], *row[1:]] for name, row in zip(above, rows, strict=False)]
    return columns, rows

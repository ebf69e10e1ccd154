"""One panel on the screen: its frame, and its answer drawn, or a sentence that says why there is none.

Owns how an answer of a given size is drawn, cached until the answer, the size or the style changes. Asks nothing.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts import Canvas, Mark, Options, Role, draw
from dflash_tui.charts.cells import text_width
from dflash_tui.store.base import PanelResult
from dflash_tui.text import visible
from dflash_tui.ui.chart import CHART_CLASSES, Inks

TABLES = ("table", "stat")
LONG_FORM = ["metric", "stat", "value"]
ROOMY_TABLE_CELLS = 72
SEPARATOR = " · "
GAP = "  "


class Panel(Widget, can_focus=True):
    """Shows what `show` was given last."""

    COMPONENT_CLASSES: ClassVar[set[str]] = CHART_CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_rows(1)", "down", show=False, tooltip="Scroll the table of this panel down."),
        Binding("up,k", "scroll_rows(-1)", "up", show=False, tooltip="Scroll the table of this panel up."),
        Binding("g,home", "scroll_rows(-1000000)", "top", show=False, tooltip="To the first row of the table."),
        Binding("G,end", "scroll_rows(1000000)", "bottom", show=False, tooltip="To the last row of the table."),
    ]

    class Resized(Message):
        """The panel has another size: another number of points fits."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.result: PanelResult | None = None
        self._scale: Literal["linear", "log"] | None = None
        self._first_row = 0
        self._marks: Sequence[Mark] = ()
        self._strips: list[Strip] | None = None
        self._inks = Inks(self)

    @property
    def scale(self) -> Literal["linear", "log"]:
        """The y scale in use: the person's, else the panel's own."""
        return self._scale or (self.result.scale if self.result else "linear")

    @property
    def has_scale(self) -> bool:
        """Whether a logarithmic axis means anything here."""
        return self.result is not None and self.result.chart in ("line", "band", "hist")

    def show(self, result: PanelResult, marks: Sequence[Mark] = ()) -> None:
        """Draw this answer from now on, with `marks` on a step axis; the same answer again costs nothing."""
        marks = marks if result.axes.get("x") == "step" else ()
        if (result, marks) != (self.result, self._marks):
            self.result, self._marks = result, marks
            self._draw_anew()

    def toggle_log(self) -> None:
        self._scale = "linear" if self.scale == "log" else "log"
        self._draw_anew()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "scroll_rows":
            return self.result is not None and self.result.chart in TABLES
        return True

    def action_scroll_rows(self, by: int) -> None:
        assert self.result is not None
        last = max(0, len(self.result.rows) - (self.size.height - 1))
        self._first_row = min(max(0, self._first_row + by), last)
        self._draw_anew()

    def on_resize(self) -> None:
        self._first_row = 0
        self._draw_anew()
        self.post_message(self.Resized())

    def on_click(self) -> None:
        self.focus()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._inks.forget()
        self._strips = None

    def render_line(self, y: int) -> Strip:
        if self._strips is None:
            self._strips = self._inks.strips(self._canvas(*self.size))
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _draw_anew(self) -> None:
        self._strips = None
        self._show_titles()
        self.refresh()

    def _show_titles(self) -> None:
        """Title left, headline right: on the frame's lower edge if it has one, else behind the title."""
        result, width = self.result, self.size.width
        title = visible(result.title if result else self.name or "")
        if result and self._scale and self._scale != result.scale:
            title += f" ({self._scale})"
        headline = visible(result.headline or "") if result and result.state == "rows" else ""
        if self.styles.border_bottom[0]:
            self.border_title = Content(title)
            self.border_subtitle = Content(fitting(headline, width - 2))
        else:
            behind = fitting(headline, width - text_width(title) - len(GAP) - 2)
            self.border_title = Content.assemble(title, (GAP + behind if behind else "", "not bold $text-muted"))
            self.border_subtitle = ""

    def _canvas(self, width: int, height: int) -> Canvas:
        result = self.result
        if result is None:
            return Canvas(width, height).note("reading ...")
        if result.state == "failed":
            return Canvas(width, height).note(f"✗ {visible(result.why or 'failed')}", Role.BAD)
        if result.state == "empty":
            return Canvas(width, height).note(f"no data: {visible(result.why or 'no rows')}")
        columns, rows = result.columns, result.rows
        if result.chart in TABLES:
            columns, rows = _table_part(columns, rows[self._first_row :], width)
        return draw(
            result.chart,
            columns,
            rows,
            result.axes,
            width=width,
            height=height,
            scale=self.scale,
            unit=result.unit,
            options=Options(self._marks),
        )


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

"""A canvas as strips of the terminal: roles become the theme's colours, by component classes; and a widget of these.

Owns the look of a band: a tint behind the line where there are colours, the canvas's shade characters where there are
not (NO_COLOR, themes of sixteen colours), so that it never hides the line and never vanishes.
"""

from typing import Any, ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.canvas import SHADE, Canvas, Role, Span

_TINT = "chart--tint"
CHART_CLASSES = {_TINT, *(f"chart--{role}" for role in Role)}


class Inks:
    """The styles of one widget, whose COMPONENT_CLASSES include CHART_CLASSES, looked up once until `forget`.

    textual forgets them at every refresh, and to look them up again is a quarter of what a redraw takes.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[tuple[Role, Role | None], Style] = {}
        self._tint: Style | None = None
        self._drawn: list[tuple[list[Span], Strip]] = []

    def forget(self) -> None:
        """The widget's own style changed."""
        self._styles, self._tint, self._drawn = {}, None, []

    def strips(self, canvas: Canvas) -> list[Strip]:
        """Every row of `canvas` in the widget's colours."""
        app = self._widget.app
        has_tint = not (app.no_color or app.native_ansi_color)
        if self._tint is None:
            ground = self._widget.get_component_rich_style(_TINT).bgcolor
            self._tint = Style(bgcolor=ground) if has_tint else Style()
        # A row that reads as it did keeps its strip, and with it what textual made of that.
        rows, known = canvas.rows(), self._drawn
        strips = [
            known[y][1]
            if y < len(known) and known[y][0] == row
            else Strip([self._segment(span, has_tint) for span in row], canvas.width)
            for y, row in enumerate(rows)
        ]
        self._drawn = list(zip(rows, strips, strict=True))
        return strips

    def _segment(self, span: Span, has_tint: bool) -> Segment:
        key = (span.role, span.ground)
        style = self._styles.get(key)
        if style is None:
            style = self._widget.get_component_rich_style(f"chart--{span.role}")
            if span.ground is Role.BAND and self._tint:
                style += self._tint
            self._styles[key] = style
        return Segment(span.text.replace(SHADE, " ") if has_tint and span.role is Role.BAND else span.text, style)


class ChartWidget(Widget):
    """Drawn by `_draw` in its own size, and again only when `_draw_anew` says so, or its style changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = CHART_CLASSES

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._canvas: Canvas | None = None
        self._strips: list[Strip] | None = None
        self._inks = Inks(self)
        self._scale: Literal["linear", "log"] | None = None

    @property
    def own_scale(self) -> Literal["linear", "log"]:
        """The y scale of what it shows, when a person has chosen none."""
        raise NotImplementedError

    def _draw(self, width: int, height: int) -> Canvas:
        raise NotImplementedError

    @property
    def scale(self) -> Literal["linear", "log"]:
        """The y scale in use."""
        return self._scale or self.own_scale

    def toggle_log(self) -> None:
        self._scale = "linear" if self.scale == "log" else "log"
        self._draw_anew()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._inks.forget()
        self._strips = None

    def render_line(self, y: int) -> Strip:
        strips = self.drawn()
        return strips[y] if y < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def drawn(self) -> list[Strip]:
        """Its lines, drawn now if they are not yet."""
        if self._strips is None:
            self._canvas = self._draw(*self.size)
            self._strips = self._inks.strips(self._canvas)
        return self._strips

    def _draw_anew(self) -> None:
        self._strips = None
        self.refresh()

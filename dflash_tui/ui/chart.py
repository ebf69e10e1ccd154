"""A canvas as strips of the terminal: roles become the theme's colours, by component classes.

Owns the look of a band: a tint behind the line where there are colours, the canvas's shade characters where there are
not (NO_COLOR, themes of sixteen colours), so that it never hides the line and never vanishes.
"""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.canvas import SHADE, Canvas, Role, Span

_TINT = "chart--tint"
CHART_CLASSES = {_TINT, *(f"chart--{role}" for role in Role)}


def strips(canvas: Canvas, widget: Widget) -> list[Strip]:
    """Every row of `canvas` in the colours of `widget`, whose COMPONENT_CLASSES include CHART_CLASSES."""
    has_tint = not (widget.app.no_color or widget.app.native_ansi_color)
    tint = Style(bgcolor=widget.get_component_rich_style(_TINT).bgcolor) if has_tint else Style()
    styles: dict[tuple[Role, Role | None], Style] = {}

    def segment(span: Span) -> Segment:
        key = (span.role, span.ground)
        if key not in styles:
            ink = widget.get_component_rich_style(f"chart--{span.role}")
            styles[key] = ink + tint if span.ground is Role.BAND else ink
        return Segment(span.text.replace(SHADE, " ") if has_tint and span.role is Role.BAND else span.text, styles[key])

    return [Strip(map(segment, row), canvas.width) for row in canvas.rows()]

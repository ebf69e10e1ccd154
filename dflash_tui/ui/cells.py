"""One line of the terminal laid out of pieces: cut with an ellipsis, padded, joined. Knows widths and no meaning.

How wide a character is stands in `charts.cells`, so that charts, lists and headers agree.
"""

from collections.abc import Iterable
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.charts.cells import fit, text_width


def laid(text: str, width: int, align: Literal["left", "right"] = "left") -> str:
    """`text` in exactly `width` cells."""
    cut = fit(text, width)
    blank = " " * (width - text_width(cut))
    return blank + cut if align == "right" else cut + blank


def ink(widget: Widget, look: str) -> Style:
    """The colour and weight of a component class, without the ground it would stand on; "" is the widget's own."""
    if not look:
        return Style()
    style = widget.get_component_rich_style(look)
    return Style(color=style.color, bold=style.bold, dim=style.dim)


def line(pieces: Iterable[tuple[str, Style]], width: int, ground: Style) -> Strip:
    """Texts one after the other on `ground`, in exactly `width` cells."""
    segments: list[Segment] = []
    left = width
    for text, style in pieces:
        cut = fit(text, left)
        segments.append(Segment(cut, ground + style))
        left -= text_width(cut)
    segments.append(Segment(" " * left, ground))
    return Strip(segments, width)

"""The chart of the Compare screen: one panel of several runs, and what others reached in it. Asks nothing."""

from collections.abc import Sequence
from typing import Literal

from textual.content import Content
from textual.message import Message

from dflash_tui.charts import Canvas, Level, Trace, draw_overlay
from dflash_tui.charts.cells import text_width
from dflash_tui.charts.series import named_or, numbers
from dflash_tui.comparison import TRAINED, Held
from dflash_tui.store.base import PanelResult
from dflash_tui.text import number, visible
from dflash_tui.ui.chart import ChartWidget
from dflash_tui.ui.compare_list import SIGNS
from dflash_tui.ui.panel import SEPARATOR

REFERENCE_SIGN = "R"


class CompareChart(ChartWidget):
    """Shows what `show` was given last, or a sentence."""

    class Resized(Message):
        """Another number of points fits."""

    def __init__(self) -> None:
        super().__init__()
        self._panel: PanelResult | None = None
        self._traces: Sequence[Trace] = ()
        self._levels: Sequence[Level] = ()
        self._words = "reading ..."
        self._place = (1, 1)

    @property
    def own_scale(self) -> Literal["linear", "log"]:
        return self._panel.scale if self._panel else "linear"

    def show(
        self, panels: Sequence[PanelResult], names: Sequence[str], held: Sequence[Held], place: tuple[int, int]
    ) -> None:
        """Draw one panel of each run, those called `names`; `held` are figures of a reference that belong to it.

        `place`: the first, second... of how many panels that have something to draw.
        """
        if self._panel and self._panel.name != panels[0].name:
            self._scale = None
        drawn = [(sign, name, panel) for sign, name, panel in zip(SIGNS, names, panels, strict=False)]
        self._panel = panels[0]
        self._traces = [_trace(sign, name, panel) for sign, name, panel in drawn] + _slots(held)
        self._levels = [_level(one) for one in held if not one.stat.isdecimal()]
        self._place = place
        self._entitle()
        self._draw_anew()

    def say(self, words: str) -> None:
        """Draw nothing but a sentence."""
        self._panel, self._words, self.border_title = None, words, ""
        self._draw_anew()

    def _entitle(self) -> None:
        """The title, and behind it as much of the hint as there is room for."""
        if self._panel is None:
            return
        title = visible(self._panel.title)
        at, num = self._place
        hints = (f"  {at} of {num}, tab for the next", f"  {at} of {num}, tab", f"  {at} of {num}")
        # The frame keeps two cells at either end.
        room = self.size.width + self.styles.gutter.width - 4 - text_width(title)
        hint = next((hint for hint in hints if len(hint) <= room), "")
        self.border_title = Content.assemble(title, (hint, "not bold $text-muted"))

    def on_resize(self) -> None:
        self._entitle()
        self._draw_anew()
        self.post_message(self.Resized())

    def _draw(self, width: int, height: int) -> Canvas:
        panel = self._panel
        if panel is None:
            return Canvas(width, height).note(visible(self._words))
        return draw_overlay(
            self._traces,
            width=width,
            height=height,
            scale=self.scale,
            x_name=panel.axes.get("x", "step"),
            x_scale=panel.axes.get("x_scale", "linear"),
            unit=panel.unit,
            levels=self._levels,
        )


def _trace(sign: str, name: str, panel: PanelResult) -> Trace:
    if panel.state != "rows":
        return Trace(sign, f"{visible(name)}: {visible(panel.why or 'no rows')}", [], [])
    columns, rows = panel.columns, panel.rows
    y = named_or(panel.axes, "y", columns, 1)
    values = numbers(columns, rows, y)
    newest = next((value for value in reversed(values) if value is not None), None)
    xs = numbers(columns, rows, named_or(panel.axes, "x", columns, 0))
    # Of bars the headline begins with which row they are of: an evaluation, or one of training.
    of = f", {visible(panel.headline.partition(SEPARATOR)[0])}" if panel.chart == "bars" and panel.headline else ""
    return Trace(sign, visible(name), xs, values, figure=f"{number(newest, 3)}{of}")


def _slots(held: Sequence[Held]) -> list[Trace]:
    """Figures by slot of a block are a line of their own, from slot to slot."""
    slots = sorted((int(one.stat), one.reference) for one in held if one.stat.isdecimal())
    xs, values = [float(slot) for slot, _ in slots], [value for _, value in slots]
    return [Trace(REFERENCE_SIGN, "reference", xs, values, is_other=True)] if slots else []


def _level(one: Held) -> Level:
    """12.4, now 29 % (a), 22 % (b) of reference."""
    shares = [(sign, one.share(value)) for sign, value in zip(SIGNS, (one.a, one.b), strict=False)]
    told = [f"{share:.0f} % ({sign})" for sign, share in shares if share is not None]
    of = f" {one.stat}" if one.stat != "last" else ""
    by = f", by {TRAINED}" if one.of == TRAINED else ""
    return Level(
        one.reference, f"{number(one.reference, 3)}{of}" + (f", now {', '.join(told)} of reference{by}" if told else "")
    )

"""What became of the values that a chart was given. Every value is counted exactly once."""

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Counts of values by their fate; what was left out is said on the chart and can be asked of the canvas."""

    num_drawn: int = 0
    num_clipped: int = 0
    """Drawn at the edge of the plot, with a mark, because the axis ends before them."""
    num_missing: int = 0
    """None: never measured."""
    num_non_finite: int = 0
    """NaN and infinities: measured, and wrong."""
    num_off_log: int = 0
    """Zero or negative, on a log axis."""
    num_without_x: int = 0
    """A value, but no place on the x axis."""

    def notes(self) -> str:
        """What a reader must know to trust the picture, in a few words; "" when all that was measured is drawn."""
        said = (
            (self.num_non_finite, "NaN/Inf"),
            (self.num_off_log, "≤0 off log"),
            (self.num_clipped, "clipped ▲"),
            (self.num_without_x, "without x"),
        )
        return " · ".join(f"{num:,} {what}" for num, what in said if num)

    def fates(self) -> str:
        """The notes, and what is missing: why a chart is empty."""
        missing = f"{self.num_missing:,} missing" if self.num_missing else ""
        return " · ".join(part for part in (self.notes(), missing) if part)

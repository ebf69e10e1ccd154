"""What a viewer adds to a panel at the moment: none of it is part of the panel's own question."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the x axis that is worth a vertical line: a resume, a finding."""

    x: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """`x_limits` are where the x axis begins and ends, so that several charts share it; rows beyond are not there.

    `cursor` is a place on it; `smoothing` from 0 (none) to below 1 is how much of a line's past each point holds.
    """

    marks: Sequence[Mark] = ()
    x_limits: tuple[float, float] | None = None
    cursor: float | None = None
    smoothing: float = 0.0


NO_OPTIONS = Options()

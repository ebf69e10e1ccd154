"""What a viewer adds to a panel at the moment: none of it is part of the panel's own question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the x axis that is worth a vertical line: a resume, a finding."""

    x: float
    label: str = ""
    sign: str = ""
    """One character that stands for it on the x axis."""
    is_bad: bool = False
    """It stands over others at its place."""


@dataclass(frozen=True, slots=True)
class Level:
    """A value that is drawn from edge to edge, and what the legend says of it."""

    value: float
    name: str


@dataclass(frozen=True, slots=True)
class Options:
    """`x_limits` are where the x axis begins and ends, so that several charts share it; rows beyond are not there.

    `cursor` is a place on it; `smoothing` from 0 (none) to below 1 is how much of a line's past each point holds.
    """

    marks: Sequence[Mark] = ()
    x_limits: tuple[float, float] | None = None
    cursor: float | None = None
    smoothing: float = 0.0
    levels: Sequence[Level] = ()
    """What a line is held against."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """What bars are held against, by their labels."""


NO_OPTIONS = Options()

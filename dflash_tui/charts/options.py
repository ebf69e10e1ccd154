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
    marks: Sequence[Mark] = ()


NO_OPTIONS = Options()

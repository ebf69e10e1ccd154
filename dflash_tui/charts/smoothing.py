"""A smoothed line: the exponential moving average of its points, without the bias towards its first.

Owns what a gap does to it: a missing value stays missing, and the average goes on behind it.
"""

from collections.abc import Sequence

# A point's weight is halved after some 1, 7 and 34 points.
LEVELS = (0.6, 0.9, 0.98)


def smooth(values: Sequence[float | None], weight: float) -> list[float | None]:
    """Each point as the mean of itself and all before it, a point n back weighing weight^n; finite or None."""
    smoothed: list[float | None] = []
    mean = mass = 0.0
    for value in values:
        if value is None:
            smoothed.append(None)
            continue
        mass = weight * mass + (1 - weight)
        # As shares that add up to 1: the sum of large doubles is infinite.
        share = (1 - weight) / mass
        mean = (1 - share) * mean + share * value
        smoothed.append(mean)
    return smoothed

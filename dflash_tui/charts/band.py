"""The band between two values at each x, in shade characters: seen without colour, and under a line.

Owns which cells a band covers.
"""

from collections.abc import Sequence

from dflash_tui.charts.frame import Frame

Edges = tuple[float, float]
_Slice = tuple[int, int, int]  # a dot column and the band's first and last dot row in it


def draw_band(frame: Frame, across: Sequence[int | None], band: Sequence[Edges | None]) -> None:
    """Shade each cell that the band covers by half or more; where it is thinner than that it keeps one cell.

    `across` are the dot columns of the band's edges.
    """
    tops, bottoms = [4 * frame.height] * (2 * frame.width), [-1] * (2 * frame.width)
    for column, top, bottom in _slices(frame, across, band):
        if top < tops[column]:
            tops[column] = top
        if bottom > bottoms[column]:
            bottoms[column] = bottom
    for cell in range(frame.width):
        top = min(tops[2 * cell], tops[2 * cell + 1])
        bottom = max(bottoms[2 * cell], bottoms[2 * cell + 1])
        if bottom < 0:
            continue
        first, last = (top + 2) // 4, (bottom - 2) // 4
        if first > last:
            first = last = (top + bottom) // 8
        frame.canvas.shade(frame.left + cell, frame.top + first, frame.top + last)


def _slices(frame: Frame, across: Sequence[int | None], band: Sequence[Edges | None]) -> list[_Slice]:
    """The band in every dot column from one x to the next; a gap where an x has no band."""
    num_y = 4 * frame.height
    if frame.y.kind == "log":
        # One that begins at or below zero reaches down to the end of the axis.
        floor = frame.y.low
        band = [(max(edges[0], floor), edges[1]) if edges and edges[1] > 0 else None for edges in band]
    lows, highs = ([edges and edges[side] for edges in band] for side in (0, 1))
    slices: list[_Slice] = []
    previous: _Slice | None = None
    for x, high, low in zip(across, frame.y.places(highs, num_y), frame.y.places(lows, num_y), strict=True):
        if x is None or high is None or low is None:
            previous = None
            continue
        here = x, num_y - 1 - high, num_y - 1 - low
        if previous is not None and x > previous[0] + 1:
            slices += _between(previous, here)
        slices.append(here)
        previous = here
    return slices


def _between(left: _Slice, right: _Slice) -> list[_Slice]:
    width = right[0] - left[0]
    return [
        (
            left[0] + i,
            left[1] + (right[1] - left[1]) * i // width,
            left[2] + (right[2] - left[2]) * i // width,
        )
        for i in range(1, width)
    ]

"""What a panel's parameters stand for, for who asks its SQL by other means than a report: a person with an editor.

Which parameters there are is in panels.py; a report binds them to what it sees of the run while it answers.
"""

from typing import Any

from dflash_tui.runs import Stretches, Window
from dflash_tui.store.base import Store
from dflash_tui.store.panel_windows import NUM_RECENT, bucket_width, window_of

_OF_WINDOW = ("run", "first", "last", "buckets", "width", "last_n", "recent", "length_edges")
# Of two windows that are compared; null: a panel's own.
_OF_TWO = ("a_first", "a_last", "b_first", "b_last")
NAMES = (*_OF_WINDOW, *_OF_TWO)


def parameters_of(
    store: Store,
    run_id: str,
    asked: Window,
    own: Window | None = None,
    buckets: int = 240,
    length_edges: tuple[float, float] = (1500.0, 3000.0),
    stretches: Stretches | None = None,
) -> dict[str, Any]:
    """For a panel whose own window is `own`, over a run as it is now. Raises what the store does."""
    window, is_everything = window_of(own, asked)
    rows = store.window(run_id, window)
    # In a range of steps every row may count as recent: that asks for more, and for nothing else.
    recent = rows if window.kind == "range" else store.window(run_id, Window.last_rows(asked.n or NUM_RECENT))
    first, last = (None, None) if is_everything else (rows.first, rows.last)
    values = (run_id, first, last, buckets, bucket_width(rows, buckets), asked.n, recent.first, list(length_edges))
    ends = [end for one in stretches or (Window(), Window()) for end in (one.first, one.last)]
    return {**dict(zip(_OF_WINDOW, values, strict=True)), **dict(zip(_OF_TWO, ends, strict=True))}

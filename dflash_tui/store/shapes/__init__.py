"""The shapes of logs: which there are, and what turns one line of each into records.

One file a shape. A reader sees a single line without its newline and remembers nothing between two, so that a log is
read the same however it was cut. Names of keys and types of columns are not its business: keys.py and exact.py.
"""

from collections.abc import Callable

from dflash_tui.store.lines import Parsed, parse

LineReader = Callable[[bytes], Parsed]

_READERS: dict[str, LineReader] = {"jsonl": parse}
SHAPES = tuple(_READERS)


def line_reader(name: str) -> LineReader:
    """What reads one line of a log of this shape. KeyError for a name that is none of `SHAPES`."""
    return _READERS[name]

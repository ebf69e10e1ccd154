"""The shapes of logs: which there are, and what turns one line of each into records.

One file a shape. A reader sees a single line without its newline and remembers nothing between two, so that a log is
read the same however it was cut. Names of keys and types of columns are not its business: keys.py and exact.py.
"""

from collections.abc import Callable

from dflash_tui.store.lines import Parsed, parse
from dflash_tui.store.shapes import documents, jsonl, text

LineReader = Callable[[bytes], Parsed]

# A trainer_state document was laid out as JSON lines when it came in.
_READERS: dict[str, LineReader] = {"jsonl": parse, "text": text.read_line, "trainer_state": parse}
SHAPES = tuple(_READERS)


def line_reader(name: str) -> LineReader:
    """What reads one line of a log of this shape. KeyError for a name that is none of `SHAPES`."""
    return _READERS[name]


def detect(head: bytes) -> str:
    """The shape of a log that begins so. One that says nothing yet is taken for an output: whatever comes is read."""
    if documents.is_document(head):
        return "trainer_state"
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b"\0 \t\r")]
    if not lines:
        return "jsonl"
    is_jsonl = jsonl.is_object(lines[0]) or 2 * sum(map(jsonl.is_object, lines)) >= len(lines)
    return "jsonl" if is_jsonl else "text"

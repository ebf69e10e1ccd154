"""JSON lines: every line is a record, or it is told why not. `lines.parse` reads them; what stands here tells them.

Whole JSON documents (`trainer_state.json`) are laid out as such lines before they reach a mirror: documents.py.
"""

import re

_RECORD = re.compile(rb'[\s\0]*\{\s*["}]')


def share(lines: list[bytes]) -> float:
    """How many of these lines begin as a JSON object does, from 0 to 1."""
    return sum(map(is_object, lines)) / max(1, len(lines))


def is_object(line: bytes) -> bool:
    """Whether a line begins as a JSON object does."""
    return _RECORD.match(line) is not None

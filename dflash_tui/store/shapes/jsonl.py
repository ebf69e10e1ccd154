"""How JSON lines are told from other logs. `lines.parse` reads a line of them."""

import re

_RECORD = re.compile(rb'[\s\0]*\{\s*["}]')


def is_object(line: bytes) -> bool:
    """Whether a line begins as a JSON object does."""
    return _RECORD.match(line) is not None

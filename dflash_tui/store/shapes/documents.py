"""Whole JSON documents with a list of records: Hugging Face's `trainer_state.json`, laid out as one record a line.

Records are copied as they stand, only without the blanks between their tokens: no number is read and written anew, and
a document that grew begins with the same lines as before.
"""

import json
import re
from collections.abc import Iterator

_STATE = re.compile(rb'"log_history"\s*:\s*\[')
_LIST = re.compile(rb"\s*\[\s*\{")
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_BLANK = re.compile(r"[\s,]*")


def is_document(head: bytes) -> bool:
    """Whether a file that begins so is such a document: `log_history` in its first object, or a list of objects."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _LIST.match(head):
        return True
    # A line that is an object by itself is one of JSON lines, unless it is the whole document.
    first = head.lstrip().partition(b"\n")[0].rstrip()
    is_one = first.startswith(b"{") and (not first.endswith(b"}") or _STATE.search(first) is not None)
    return is_one and _STATE.search(head) is not None


def unroll(text: str) -> Iterator[str]:
    """The records of a document, one at a time. ValueError, with the place, where it is no JSON."""
    text = text.removeprefix("\ufeff")
    found = re.compile(r"\s*\[").match(text) or _HISTORY.search(text)
    if not found:
        raise ValueError("it has no log_history")
    decoder = json.JSONDecoder()
    at = _skip_blank(text, found.end())
    while text[at : at + 1] != "]":
        _, end = decoder.raw_decode(text, at)
        yield _TOKEN.sub(lambda token: token[1] or "", text[at:end])
        at = _skip_blank(text, end)


def _skip_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at

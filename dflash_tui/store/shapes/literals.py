"""Dicts inside a line of text, as `json.dumps` or Python's `print` writes them, read without running anything.

Whoever prints a dict of metrics gets single quotes, True and None, bare nan and inf, sometimes `tensor(0.5)` around a
number. Such a dict is rewritten as JSON, token by token, and then read by the JSON reader: no `eval`, no AST.
"""

import json
import re
from json.encoder import encode_basestring
from typing import Any

# A dict that Python printed is looked for within so many characters; a JSON object may be of any size.
MAX_PYTHON_CHARS = 1 << 18
_SIGN = re.compile(r"""['"{}]""")
_REST = {"'": re.compile(r"[^'\\]*(?:\\.[^'\\]*)*'", re.S), '"': re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.S)}
_TOKEN = re.compile(
    r"""'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'
    |"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"
    |[A-Za-z_][\w.]*\(\s*(?P<inner>[-+]?[\w.]+(?:[eE][-+]?\d+)?)\s*(?:,[^()]*)?\)
    |(?P<word>[-+]?\b[A-Za-z_]\w*)
    |(?P<bracket>[()])
    |(?P<comma>,)(?=\s*[\])}])""",
    re.S | re.X,
)
_ESCAPE = re.compile(r"\\(?:(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|([0-7]{1,3})|(.))", re.S)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_WORDS = {"True": "true", "False": "false", "None": "null", "nan": "NaN", "inf": "Infinity", "infinity": "Infinity"}


def read_object(text: str, start: int, decoder: json.JSONDecoder) -> tuple[dict[str, Any], int] | None:
    """The dict that begins at `start`, where a `{` stands, and where it ends; None where there is none."""
    try:
        value, end = decoder.raw_decode(text, start)
        return value, end
    except (ValueError, RecursionError):
        pass
    found = _end_of(text, start)
    if found is None:
        return None
    try:
        return decoder.decode(_TOKEN.sub(_as_json, text[start:found])), found
    except (ValueError, RecursionError):
        return None


def _end_of(text: str, start: int) -> int | None:
    """Behind the brace that closes the one at `start`; None if there is none, or a string without an end before it."""
    limit = min(len(text), start + MAX_PYTHON_CHARS)
    depth, at = 0, start
    while sign := _SIGN.search(text, at, limit):
        at = sign.end()
        if sign[0] == "{":
            depth += 1
        elif sign[0] == "}":
            depth -= 1
            if depth == 0:
                return at
        elif rest := _REST[sign[0]].match(text, at, limit):
            at = rest.end()
        else:
            return None
    return None


def _as_json(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "single" | "double":
            content = token[token.lastgroup]
            return encode_basestring(_ESCAPE.sub(_character, content) if "\\" in content else content)
        case "inner":
            return _number(token["inner"])
        case "word":
            return _word(token[0])
        case "bracket":
            return "[" if token[0] == "(" else "]"
        case _:
            return ""


def _character(escape: re.Match[str]) -> str:
    *numbers, octal, letter = escape.groups()
    if letter is not None:
        return _ESCAPED.get(letter, letter if letter in "\\'\"" else escape[0])
    return chr(int(octal, 8) if octal else int(next(filter(None, numbers)), 16))


def _word(text: str) -> str:
    sign, word = ("-", text[1:]) if text.startswith("-") else ("", text.lstrip("+"))
    found = _WORDS.get(word, word)
    return found if found == "NaN" else sign + found


def _number(text: str) -> str:
    """What stands in `tensor(2.)` or `np.float64(nan)`, as JSON has it."""
    if not text.lstrip("-+")[:1].isdigit():
        return _word(text)
    try:
        return json.dumps(float(text) if re.search(r"[.eE]", text) else int(text))
    except ValueError:
        return text

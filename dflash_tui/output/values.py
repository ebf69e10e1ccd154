"""One value as text or as strict JSON, the same in every format.

Owns the words of the three non-finite numbers, and what stands for bytes. The kinds of cells are those of
`store.base.Answer`; the name of their column's type says the rest.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

# In ASCII: no character that a terminal obeys or hides, and none that a narrow stdout would spoil.
_ascii = json.JSONEncoder(allow_nan=False)
_readable = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_WHOLE = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "BIGNUM"}
    | {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_DECIMAL = re.compile(r"DECIMAL\(\d+,(\d+)\)")
_OUTSIDE_ASCII = re.compile(r"[^ -~]")


def is_number(kind: str) -> bool:
    """Whether the type called `kind` is one of numbers."""
    return kind in _WHOLE or kind in ("DOUBLE", "FLOAT") or _DECIMAL.fullmatch(kind) is not None


def word(value: float) -> str:
    """A float with all of its digits; NaN, Infinity, -Infinity."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def blob(value: bytes) -> str:
    r"""Bytes as DuckDB writes and reads them, `'a\xff'::blob`: printable ASCII, `\x..` for the rest."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\"'\\" else f"\\x{byte:02x}" for byte in value)


def plain(value: Any) -> Any:
    """`value` as strict JSON has it: a float that is not finite becomes its word, bytes become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return word(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return blob(value) if isinstance(value, bytes) else value


def json_text(value: Any) -> str:
    """`value` as strict JSON on one line, in printable ASCII."""
    return _ascii.encode(plain(value)).replace("\x7f", "\\u007f")


def texts(kind: str, cells: Sequence[Any]) -> list[str | None]:
    """A column's cells as text, None for NULL. No character is escaped or quoted yet."""
    write = _writer(kind)
    if None in cells:
        return [None if cell is None else write(cell) for cell in cells]
    if write is word and all(map(math.isfinite, cells)):
        write = repr
    return list(cells) if kind in ("VARCHAR", "JSON") else list(map(write, cells))


def json_texts(kind: str, cells: Sequence[Any]) -> list[str]:
    """A column's cells as strict JSON: numbers with every digit, JSON columns as what they hold."""
    write: Callable[[Any], str]
    if kind in _WHOLE or _DECIMAL.fullmatch(kind):
        write = _writer(kind)
    elif kind in ("DOUBLE", "FLOAT"):
        write = repr if None not in cells and all(map(math.isfinite, cells)) else _json_float
    elif kind == "VARCHAR":
        write = _json_string
    else:
        write = _embedded if kind == "JSON" else json_text
    if None in cells:
        return ["null" if cell is None else write(cell) for cell in cells]
    return list(map(write, cells))


def _writer(kind: str) -> Callable[[Any], str]:
    if kind in _WHOLE or kind in ("VARCHAR", "JSON"):
        return str
    if kind in ("DOUBLE", "FLOAT"):
        return word
    if decimal := _DECIMAL.fullmatch(kind):
        scale = int(decimal[1])
        return lambda value: f"{value:.{scale}f}" if isinstance(value, float) else str(value)
    return _text


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return blob(value)
    return word(value) if isinstance(value, float) else _readable.encode(plain(value))


def _json_string(text: str) -> str:
    return encode_basestring_ascii(text).replace("\x7f", "\\u007f")


def _json_float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{word(value)}"'


def _embedded(text: str) -> str:
    """A JSON column's cell. DuckDB lets NaN and Infinity pass as JSON: such a cell is text."""
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json_text(text)
    return _OUTSIDE_ASCII.sub(_escaped, text)


def _refuse(token: str) -> None:
    raise ValueError(token)


def _escaped(found: re.Match[str]) -> str:
    # Line ends and tabs stand between tokens only, all others in strings only.
    return " " if found[0] in "\n\r\t" else _ascii.encode(found[0])[1:-1].replace("\x7f", "\\u007f")

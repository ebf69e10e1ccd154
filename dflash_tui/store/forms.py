"""Forms of log lines: what a line looks like once the characters of its numbers are taken out.

A training loop writes all day in a few forms. Each is looked at once, exactly; then thousands of lines are known to be
flat objects of such keys and values of these types, at the price of one pass over their bytes. What a form cannot tell,
whether each number is one and a key not its look-alike, is seen when DuckDB has parsed them (staging.py).
"""

import json
from collections import Counter
from typing import Any, NamedTuple

from dflash_tui.store.keys import Names
from dflash_tui.store.lines import MAX_DEPTH

# Digits, and what else stands in a number. Some stand in names and words as well, so lines of one form may differ in
# those: which keys they really have is seen when they are staged.
_NUMERIC = b"0123456789.-+eE"
_MAX_FORMS = 4096
# Small enough to stay in a core's cache while it is looked at.
_BLOCK_BYTES = 1 << 17
_PLAIN_KINDS: dict[str, tuple[type, ...]] = {
    "DOUBLE": (int, float),
    "BIGINT": (int, float),
    "INTEGER": (int, float),
    "BOOLEAN": (bool,),
    "VARCHAR": (str,),
    "DOUBLE[]": (list,),
    "JSON": (dict, list),
}


class Form(NamedTuple):
    """A form that DuckDB parses exactly: the column of each key that fills one, the keys that could but are null, how
    many other keys, and what kind of row it is (None: the line says so under `event`)."""

    columns: tuple[tuple[str, str], ...]
    nulls: tuple[str, ...]
    num_unknown: int
    event: str | None


class Forms:
    """The forms that were met so far; one for each kind of line is remembered."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[bytes, Form | None] = {}

    def of(self, data: bytes, num_lines: int) -> Counter[Form] | list[Form | None]:
        """How many of these lines have which form, where all have plain ones of one kind of row; else the form of
        each, None for one that must be read by itself."""
        shadows = _count(data)
        known = self._known
        if missing := shadows.keys() - known.keys():
            if len(known) >= _MAX_FORMS:
                # Another thread may still read the full one.
                known, missing = {}, set(shadows)
                self._known = known
            self._learn(data, missing, known)
        met: Counter[Form] = Counter()
        for shadow, times in shadows.items():
            if form := known[shadow]:
                met[form] += times
        if met.total() == num_lines and len({form.event for form in met}) == 1:
            return met
        return [known[shadow] for shadow in _shadow(data).split(b"\n")]

    def _learn(self, data: bytes, missing: set[bytes], known: dict[bytes, Form | None]) -> None:
        """Look at a line of `data` for each shadow that is missing."""
        at = 0
        # Mostly the first line is like all others.
        while missing:
            end = data.find(b"\n", at)
            line = data[at:] if end < 0 else data[at:end]
            if (shadow := _shadow(line)) in missing:
                known[shadow] = _look_at(line, self._names)
                missing.remove(shadow)
            at = end + 1


def _shadow(data: bytes) -> bytes:
    """`data` without the characters of its numbers."""
    return data.translate(None, _NUMERIC)


def _count(data: bytes) -> Counter[bytes]:
    """How many lines have which shadow."""
    met: Counter[bytes] = Counter()
    rest = b""
    for at in range(0, len(data), _BLOCK_BYTES):
        block = rest + _shadow(data[at : at + _BLOCK_BYTES])
        end = block.rfind(b"\n") + 1
        _count_lines(block[:end], met)
        rest = block[end:]
    met[rest] += 1
    return met


def _count_lines(lines: bytes, met: Counter[bytes]) -> None:
    # Lines that are alike stand behind one another mostly, and need one comparison: to split them takes as long as all
    # else that is done with their forms.
    at = 0
    while at < len(lines):
        width = lines.index(b"\n", at) + 1 - at
        first = lines[at : at + width]
        ends = lines[at + width - 1 :: width]
        num = len(ends) - len(ends.lstrip(b"\n"))
        if lines[at : at + num * width] != first * num:
            # As long, but not alike: so may be all that follow.
            met.update(lines[at:-1].split(b"\n"))
            return
        met[first[:-1]] += num
        at += num * width


def _look_at(line: bytes, names: Names) -> Form | None:
    """The form of `line` and all lines like it, if DuckDB reads them as exact.py does."""
    # Escapes could hide a doubled key, and more brackets a depth that DuckDB does not take.
    if b"\\" in line or b"\0" in line or line.count(b"[") + line.count(b"{") > MAX_DEPTH:
        return None
    try:
        record = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if any(map(_may_be_doubled, record.values())):
        return None
    columns: dict[str, str] = {}
    nulls: list[str] = []
    num_unknown = 0
    for key, value in record.items():
        column = names.column(key)
        # A key that means something only beside others, a dict that may be laid flat, and staging.py's own mark.
        if not names.is_plain(key) or key.startswith("=") or (isinstance(value, dict) and column is None):
            return None
        if column is None:
            num_unknown += 1
        elif value is None:
            nulls.append(key)
        else:
            if column in columns.values() or not _is_plain(column, key, names.kinds[column], value):
                return None
            columns[key] = column
    return Form(tuple(columns.items()), tuple(nulls), num_unknown, _event(set(columns.values())))


def _may_be_doubled(value: Any) -> bool:
    """Whether a key inside `value` differs from another only by what forms leave out: in a line of the same form they
    may be one key, twice."""
    if isinstance(value, list):
        return any(map(_may_be_doubled, value))
    if not isinstance(value, dict):
        return False
    return len({_shadow(key.encode()) for key in value}) < len(value) or any(map(_may_be_doubled, value.values()))


def _is_plain(column: str, key: str, kind: str, value: Any) -> bool:
    if column == "event":
        return key == "event" and value == "train"
    if isinstance(value, bool) != (kind == "BOOLEAN") or not isinstance(value, _PLAIN_KINDS.get(kind, ())):
        return False
    return not isinstance(value, list) or kind == "JSON" or all(type(item) in (int, float) for item in value)


def _event(columns: set[str]) -> str | None:
    """What a row is whose line does not say: as `exact.event_of` has it."""
    if "event" in columns:
        return None
    if "eval_loss" in columns and "loss" not in columns:
        return "eval"
    return "train" if columns else "note"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)

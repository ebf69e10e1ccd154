"""The filter of the list of runs: terms that all must hold. Pure; draws nothing. The language, whole:

    word             stands in the name, host, state, reason, kind or id; case never counts
    host:pve         the field begins so;  name~kl  holds that;  state=running  is just that
    state:run,fail   any of these
    loss<1.5         by < <= > >= = the numbers step, total, done (percent), loss, speed, attempt, age, silent; 20k and
                     1.5M are numbers, 90m and 2h are ages
    !term            not so

A term that is still being typed (`loss<`) keeps every run.
"""

import re
from collections.abc import Callable

from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean
from dflash_tui.ui.run_columns import RunRow
from dflash_tui.ui.states import silence_s

Test = Callable[[RunRow], bool]

TEXTS: dict[str, Callable[[RunRow], str]] = {
    "name": lambda row: row.run.name,
    "host": lambda row: row.run.host or "",
    "state": lambda row: row.run.state,
    "reason": lambda row: row.run.reason or "",
    "kind": lambda row: row.run.kind,
    "id": lambda row: row.run.run_id,
}
AGES: dict[str, Callable[[RunRow], float | None]] = {
    "age": lambda row: None if row.run.age_s is None else row.run.age_s + row.since_s,
    "silent": lambda row: silence_s(row.run, row.since_s),
}
NUMBERS: dict[str, Callable[[RunRow], float | None]] = {
    "step": lambda row: row.run.step,
    "total": lambda row: row.run.total_steps,
    "done": lambda row: 100 * (row.run.step or 0) / row.run.total_steps if row.run.total_steps else None,
    "loss": lambda row: row.figures.loss_p50,
    "speed": lambda row: row.figures.tok_per_sec,
    "attempt": lambda row: row.run.attempt,
    **AGES,
}
_TERM = re.compile(r"(!*)(?:(\w+)(<=|>=|[:=~<>])(.*)|(.*))", re.DOTALL)
_FITS: dict[str, Callable[[str, str], bool]] = {
    ":": lambda text, wanted: text.startswith(wanted),
    "~": lambda text, wanted: wanted in text,
    "=": lambda text, wanted: text == wanted,
}
_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "=": lambda value, limit: value == limit,
    ":": lambda value, limit: value == limit,
}
_SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "%": 1.0}
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse(words: str) -> Test:
    """What the filter `words` asks of a run. UsageError says in a line what is wrong with it."""
    tests = [_term(word) for word in words.lower().split()]
    return lambda row: all(test(row) for test in tests)


def _term(word: str) -> Test:
    found = _TERM.fullmatch(word)
    assert found is not None
    bangs, field, sign, wanted, plain = found.groups()
    if not (wanted if field else plain):
        return lambda row: True
    test = _field(field, sign, wanted) if field else _anywhere(plain)
    return (lambda row: not test(row)) if len(bangs) % 2 else test


def _anywhere(word: str) -> Test:
    return lambda row: any(word in text(row).lower() for text in TEXTS.values())


def _field(field: str, sign: str, wanted: str) -> Test:
    if field in TEXTS:
        return _text(field, sign, wanted)
    if field in NUMBERS:
        return _number(field, sign, wanted)
    raise UsageError(f"no field {field!r}: {did_you_mean(field, [*TEXTS, *NUMBERS])}")


def _text(field: str, sign: str, wanted: str) -> Test:
    if sign not in _FITS:
        raise UsageError(f"{field} is text: write {field}:{wanted}, {field}~{wanted} or {field}={wanted}")
    value, fits = TEXTS[field], _FITS[sign]
    choices = [choice for choice in wanted.split(",") if choice]
    return lambda row: any(fits(value(row).lower(), choice) for choice in choices)


def _number(field: str, sign: str, wanted: str) -> Test:
    if sign not in _COMPARES:
        raise UsageError(f"{field} is a number: write {field}<{wanted}, {field}>{wanted} or {field}={wanted}")
    units, example = (_SECONDS, "90m, 2h, 3d") if field in AGES else (_SIZES, "1.5, 20k")
    read = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z%]?)", wanted, re.ASCII)
    if read is None or read[2] not in units:
        raise UsageError(f"{field}{sign}{wanted}: {wanted!r} is no number here: write {example}")
    value, compares, limit = NUMBERS[field], _COMPARES[sign], float(read[1]) * units[read[2]]

    def test(row: RunRow) -> bool:
        number = value(row)
        return number is not None and compares(number, limit)

    return test

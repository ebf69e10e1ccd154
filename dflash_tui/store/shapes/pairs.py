"""Figures that a trainer prints as words and numbers: `step: 14  loss: 3.25  tps: 7,283`, `| lm loss: 6.1E+00 |`.

One reader for the styles of Megatron-LM, torchtitan, fairseq, nanoGPT and the like: a name of up to five words, a
colon, an equals sign or blanks, a number, perhaps a unit. Names become keys in small letters, with `_` for a blank.
What a key means is for keys.py; what a unit means is settled here: seconds, GiB, and shares from 0 to 1.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from dflash_tui.store.keys import ALIASES, EVAL_WORDS, TRAIN_WORDS

# Longer text than this is no line of figures.
_MAX_CHARS = 4000
_NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?"
    r"|[-+]?(?i:nan|inf(?:inity)?)"
)
_UNIT = r" ?(?:[KMGT]i?B|ms|us|s|%|[kKM])"
_NAME = r"(?<![\w./-])([A-Za-z_][\w./-]*(?: [A-Za-z_][\w./-]*){0,4})(?: ?\(([^()|]{1,30})\))?"
_AFTER = r"(?=[\s,;|()\[\]/]|:\s|:?$)"
# Without a sign between them, a word and a number are a pair only where another pair or a divider follows.
_AFTER_BLANK = r"(?=\s{0,20}(?:[,;|()\[\]/]|:\s|:?$|[A-Za-z_][\w./-]*(?:\s?[:=]|\s[-+.\d])))"
_PAIR = re.compile(
    rf"{_NAME}(?:\s{{0,20}}[:=]\s{{0,20}}({_NUMBER})({_UNIT})?{_AFTER}|\s{{1,20}}({_NUMBER})({_UNIT})?{_AFTER_BLANK})"
)
# fairseq's `epoch 001:    100 / 1000 loss=7.2` and torchvision's `Epoch: [1]  [ 100/1000]`.
_IN_EPOCH = re.compile(
    r"(?i)\bepoch:?[ \t]?(?:(\d+):[ \t]*(\d+) / \d+|\[(\d+)(?:/\d+)?\][ \t]*\[[ \t]*(\d+)/[ \t]*\d+\])"
)

_METRIC = re.compile(r"(?:^|[_/])(?:loss(?!_scale)|acc|ppl|perplex)|_loss$")
_COUNTERS = frozenset({"step", "batch", "update", *(key for key, column in ALIASES.items() if column == "step")})
_BEFORE_COUNTERS = EVAL_WORDS | TRAIN_WORDS | {"global", "optimizer", "at", "on", "loss"}
# `time` of a text is how long something took; the column `time` is a clock.
_DURATIONS = frozenset({"time", "dt", "step_time", "iter_time", "elapsed_time_per_iteration", "time_per_step"})
_SECONDS = {"ms": 1e-3, "us": 1e-6, "s": 1.0}
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10}
_TIMES = {"k": 1e3, "K": 1e3, "M": 1e6}
# Other news that name a step and a loss: they are no point of a curve.
_NEWS = re.compile(r"\b(?:sav(?:e|ed|ing)|checkpoint\w*|best|resum\w+|load(?:ed|ing)?|restor\w+|stopp\w+)\b")
_EVAL = "(?:valid|validat(?:e|ion|ing)|val|eval|evaluat(?:e|ion|ing)|test|dev)"
_EVAL_BEFORE = re.compile(rf"(?:^|[\s|\[(:]){_EVAL}(?: (?:results?|metrics?|set))?[\s|\])}}:>=-]*$")
_EVAL_FIELD = re.compile(rf"\|\s*{_EVAL}\b[^|:=]{{0,40}}\||\[{_EVAL}\]|^\W*{_EVAL}\b")


class _Key(NamedTuple):
    """What a name of a text says: its key, and whether that counts steps or epochs, measures, or is of evaluations."""

    key: str
    unit: str | None
    is_counter: bool
    is_metric: bool
    is_eval: bool


def read_figures(text: str) -> dict[str, Any] | None:
    """The record that a text holds: where training stands, and a loss or the like. None for any other text."""
    if len(text) > _MAX_CHARS:
        return None
    record: dict[str, Any] = {}
    start: int | None = None
    num_counters = num_metrics = 0
    is_eval = False
    head = _IN_EPOCH.search(text) if "poch" in text else None
    if head:
        epoch, step = head[1] or head[3], head[2] or head[4]
        record = {"epoch": int(epoch), "iter": int(step)}
        start, num_counters = head.start(), 1
    for match in _PAIR.finditer(text, head.end() if head else 0):
        name, of, value, unit, late_value, late_unit = match.groups()
        key = _key_of(name, of)
        number = _number(value or late_value)
        unit = key.unit or (unit or late_unit or "").lstrip() or None
        if key.is_counter and (not isinstance(number, int) or unit):
            continue
        if start is None:
            if not (key.is_counter or key.is_metric or key.key == "rank"):
                continue
            start = match.start()
        num_counters += key.is_counter
        num_metrics += key.is_metric
        is_eval = is_eval or key.is_eval
        record.update([_measured(key.key, number, unit)])
    if start is None or not num_counters or not num_metrics or _NEWS.search(text[:start].lower()):
        return None
    if is_eval and num_counters == 1 and "epoch" in record and "loss" in record:
        # A whole epoch on one line: it is trained and then evaluated.
        is_eval = False
    return _named(record, is_eval or says_eval(text, start), "|" in text)


def says_eval(text: str, end: int) -> bool:
    """Whether the words right before `end`, the first word or a field of their own say that an evaluation is told."""
    text = text.lower()
    if "val" not in text and "test" not in text and "dev" not in text:
        return False
    return bool(_EVAL_BEFORE.search(text, max(0, end - 60), end) or _EVAL_FIELD.search(text))


def steps_before(text: str, end: int) -> dict[str, int]:
    """Step and epoch that the words before `end` name, for a dict that has none itself: `Step 100: {...}`."""
    found = {}
    for match in _PAIR.finditer(text, max(0, end - 200), end):
        key = _key_of(match[1], match[2])
        number = _number(match[3] or match[5])
        if key.is_counter and isinstance(number, int):
            found[key.key] = number
    return _with_step(found)


def _named(record: dict[str, Any], is_eval: bool, has_fields: bool) -> dict[str, Any]:
    record = _with_step(record)
    if is_eval:
        return {"event": "eval", **record}
    if "train_wall" in record and has_fields and "iter" not in record:
        # fairseq's mean over an epoch, at a step that its last row had.
        return {"event": "summary", **record}
    return record


def _with_step(record: dict[str, Any]) -> dict[str, Any]:
    """A batch or an update counts steps where nothing better does."""
    if record.keys() & (_COUNTERS - {"batch", "update"}):
        return record
    return {"step" if key in ("batch", "update") else key: value for key, value in record.items()}


@lru_cache(maxsize=4096)
def _key_of(name: str, of: str | None) -> _Key:
    words = name.lower().replace("-", "_").split()
    key = "_".join(words)
    unit = of if of in _SECONDS or of == "%" else None
    if of and not unit:
        key += "_" + re.sub(r"\W+", "_", of.lower()).strip("_")
    is_counter = not of and (
        key in _COUNTERS or (words[-1] in (*_COUNTERS, "epoch") and {*words[:-1]} <= _BEFORE_COUNTERS)
    )
    is_eval = bool(EVAL_WORDS & {*words, key.split("_")[0], key.split("/")[0]})
    if is_counter:
        return _Key(key if key in _COUNTERS else words[-1], unit, True, False, is_eval)
    is_metric = bool(_METRIC.search(key))
    return _Key(key, unit, False, is_metric, is_metric and is_eval)


def _number(text: str) -> int | float:
    text = text.replace(",", "")
    return int(text) if text.lstrip("-+").isdecimal() else float(text)


def _measured(key: str, number: int | float, unit: str | None) -> tuple[str, int | float]:
    """A key and its number in our units."""
    if unit in _SECONDS:
        return ("step_time_s" if key in _DURATIONS else f"{key}_s"), number * _SECONDS[unit]
    if unit is None:
        return ("elapsed" if key == "time" else key), number
    if unit == "%":
        return (key, number / 100) if _METRIC.search(key) else (f"{key}_pct", number)
    if unit in _TIMES:
        return key, number * _TIMES[unit]
    return ("mem_peak_gb" if key.split("_")[-1] in ("mem", "memory") else f"{key}_gib"), number * _GIB[unit[0]]

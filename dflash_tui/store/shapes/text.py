"""What a trainer printed: records between progress bars, colours, rank prefixes and plain words.

A record is a dict, of JSON or of Python, wherever on the line it stands, or else a line of figures (pairs.py). All
other lines are ignored, never refused; only what began as a record and is torn is told. A step that a dict does not
name is taken from the words or the progress bar before it, on the same line.
"""

import re
from typing import Any, NamedTuple

from dflash_tui.store.keys import ALIASES
from dflash_tui.store.lines import Parsed, exact_decoder
from dflash_tui.store.shapes.literals import MAX_PYTHON_CHARS, read_object
from dflash_tui.store.shapes.pairs import read_figures, says_eval, steps_before

_IGNORED = Parsed([], is_ignored=True)
_WORTH_A_LOOK = re.compile(rb"\{|[Ll]oss|LOSS|[Aa]cc|ppl|PPL|[Pp]erplex")
# Colours and cursor movements, titles and links, and the short ones.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
# torchrun's `[rank0]:` and `[default0]:`, `[0]:`, mpirun's `[1,0]<stdout>:`, srun's `0: `.
_RANK = re.compile(
    r"\s*(?:\[(?:\w*?(?:rank|Rank|RANK)|default|trainer|worker)[ :_]?(\d{1,5})\]:?|\[(\d{1,5})\]:"
    r"|\[\d{1,5},(\d{1,5})\](?:<\w+>)?:|(\d{1,5}):(?=[ \t]))[ \t]?"
)
_MARK = re.compile(r"\{|\r|\d{1,3}%\|[^|\r{}]{0,400}\|\s{0,20}(\d+)/(\d+)")
_TRAINING = re.compile(r"(?i)\b(?:train\w*|steps?|epochs?)\b")
_EPOCH = re.compile(r"(?i)\bepoch\D{0,3}(\d{1,9})")
_TORN = re.compile(
    r"""\{\s*["'](?:train/|eval_|val_)?(?:loss|step|global_step|iter|epoch|event|learning_rate|lr)["']\s*:"""
)
_NUMBER = re.compile(r"\s*[-+]?(?:\d[\d.eE+-]*|nan|inf(?:inity)?)\s*", re.I)

_STEP_KEYS = frozenset({"step", *(key for key, column in ALIASES.items() if column == "step")})
_RANK_KEYS = frozenset({"rank", *(key for key, column in ALIASES.items() if column == "rank")})
_PROGRESS = re.compile(r"(?:^|[_/])(?:loss|accuracy|acc|grad_norm|step|iter|iteration|tok_per_sec|num_updates)$|_loss$")
_SETTINGS = frozenset(
    {"epochs", "num_epochs", "num_train_epochs", "seed", "batch_size", "max_steps", "total_steps", "warmup_steps"}
    | {"warmup_ratio", "weight_decay", "optimizer", "model", "gamma", "block_size"}
)


class _Bar(NamedTuple):
    step: int
    total: int
    epoch: int | None


def read_line(raw: bytes) -> Parsed:
    """One line of an output: its records in their order, or that it has none."""
    if not _WORTH_A_LOOK.search(raw):
        return _IGNORED
    text = raw.decode(errors="replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\0" in text:
        text = text.replace("\0", "")
    text = text.removeprefix("\ufeff")
    rank = _RANK.match(text)
    notes: list[str] = []
    records, is_torn = _dicts(text, rank.end() if rank else 0, notes) if "{" in text else ([], False)
    if not records:
        parts = text[rank.end() if rank else 0 :].split("\r")
        records = [record for part in parts if "%|" not in part and (record := read_figures(part))]
    if not records:
        return Parsed([], "a record that is cut off, or mixed up with another") if is_torn else _IGNORED
    if is_torn:
        notes.append("another record of this line is cut off, and is lost")
    if "\ufffd" in text and "\ufffd".encode() not in raw:
        notes.append("bytes that are not UTF-8 were replaced")
    if rank:
        number = int(next(filter(None, rank.groups())))
        records = [record if record.keys() & _RANK_KEYS else {**record, "rank": number} for record in records]
    return Parsed(records, None, tuple(dict.fromkeys(notes)))


def _dicts(text: str, at: int, notes: list[str]) -> tuple[list[dict[str, Any]], bool]:
    """The dicts of a line that are records, and whether one is torn."""
    decoder = exact_decoder(notes)
    records: list[dict[str, Any]] = []
    is_torn = False
    bar: _Bar | None = None
    begin = at
    # A brace without its match is looked for up to the end: many of them must not make a long line endless.
    patience = 2 * len(text) + (1 << 20)
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark[0] == "\r":
            begin = at
        elif mark[0] != "{":
            bar = _newer(bar, mark, text[begin : mark.start()])
        elif patience > 0:
            num_notes = len(notes)
            if found := read_object(text, mark.start(), decoder):
                record, at = found
                if _has_number(record):
                    records.append(_placed(record, text[begin : mark.start()], bar))
                begin = at
            else:
                del notes[num_notes:]
                patience -= min(len(text) - mark.start(), MAX_PYTHON_CHARS)
                is_torn = is_torn or _TORN.match(text, mark.start()) is not None
    return records, is_torn


def _placed(record: dict[str, Any], words: str, bar: _Bar | None) -> dict[str, Any]:
    """A dict with what the line says of it besides: its step and epoch, that it is an evaluation, or only settings."""
    if _is_settings(record):
        return {"event": "note", **record}
    names = {key.rpartition("/")[2] for key in record}
    if not names & _STEP_KEYS and not any(name.endswith("num_updates") for name in names):
        place = steps_before(words, len(words))
        if not place.keys() & _STEP_KEYS and bar:
            place = {"step": bar.step, **({} if bar.epoch is None else {"epoch": bar.epoch}), **place}
        record = {**record, **{key: value for key, value in place.items() if key not in names}}
    if not names & {"event", "mode", "split", "phase"} and says_eval(words, len(words)):
        return {"event": "eval", **record}
    return record


def _newer(bar: _Bar | None, mark: re.Match[str], words: str) -> _Bar | None:
    """The bar to count by: one of training, and not a short one that runs inside it."""
    step, total = int(mark[1]), int(mark[2])
    words = words.rstrip(" :\t")[-100:]
    epoch = _EPOCH.search(words)
    is_other = re.search(r"\w", words) is not None and not _TRAINING.search(words)
    if is_other or (bar and total < bar.total):
        return bar
    return _Bar(step, total, int(epoch[1]) if epoch else None)


def _is_settings(record: dict[str, Any]) -> bool:
    """Whether a dict tells how a run was set up: no figure of its progress, and settings or words."""
    if any(_PROGRESS.search(key) and _is_number(value) for key, value in record.items()):
        return False
    return "event" not in record and (
        bool(record.keys() & _SETTINGS)
        or any(isinstance(value, str | bool) and not _is_number(value) for value in record.values())
    )


def _has_number(record: dict[str, Any]) -> bool:
    return any(_is_number(value) or (isinstance(value, dict) and _has_number(value)) for value in record.values())


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)

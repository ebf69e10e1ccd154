"""Names of log keys: which column of `records` a key belongs to, and which words name an event.

The columns themselves are read from the database, so that sql/schema.sql stays their only list. A new name for a
column is one line of ALIASES, or one of `[aliases]` in config.toml.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean

# Best first where two of a column stand in one record; the column's own name is better still.
ALIASES: dict[str, str] = {
    "ts": "time",
    "timestamp": "time",
    "_timestamp": "time",
    "wall_time": "time",
    "global_step": "step",
    "optimizer_step": "step",
    "num_updates": "step",
    "completed_steps": "step",
    "current_steps": "step",
    "iteration": "step",
    "iter": "step",
    "batch_idx": "step",
    # The count of log calls, in Weights & Biases' exports: worth something only where nothing else counts.
    "_step": "step",
    "current_epoch": "epoch",
    # One node's processes are told apart by it. On several nodes each has a 0: log global_rank there.
    "global_rank": "rank",
    "process_rank": "rank",
    "process_index": "rank",
    "local_rank": "rank",
    "learning_rate": "lr",
    "learning-rate": "lr",
    "lr/AdamW": "lr",
    "lr/adamw": "lr",
    "lr/Adam": "lr",
    "lr/default": "lr",
    "lr/group_0": "lr",
    "lr/group0": "lr",
    "lr/0": "lr",
    "lr-AdamW": "lr",
    "lr/Muon": "lr_muon",
    "lr/muon": "lr_muon",
    "lm_loss": "loss",
    "lm loss": "loss",
    "lm_loss_value": "loss",
    "reduced_train_loss": "loss",
    "loss_metrics/global_avg_loss": "loss",
    "loss_step": "loss",
    "train_loss_step": "loss",
    "train_loss": "loss",
    "Loss/train": "loss",
    "ce_loss": "loss_ce",
    "kl_div_loss": "loss_kl",
    "full_acc": "accuracy",
    "acc": "accuracy",
    "acceptance_length": "accept_len",
    "simulated_acc_len": "accept_len",
    "eal": "accept_len",
    "topk_streak_8": "ddtree_streak8",
    "unary_top_k_oracle_accepted_length": "ddtree_streak8",
    "accuracy_position": "position_acc",
    "gnorm": "grad_norm",
    "grad norm": "grad_norm",
    "grad-norm": "grad_norm",
    "grad_norm_preclip": "grad_norm",
    "padding_efficiency": "padding_eff",
    "num_input_tokens_seen": "tokens_total",
    "n_tokens_seen": "tokens_total",
    "tokens_per_sec": "tok_per_sec",
    "tokens_per_second": "tok_per_sec",
    "tokens_per_s": "tok_per_sec",
    "tok/sec": "tok_per_sec",
    "tok/s": "tok_per_sec",
    "tokens/sec": "tok_per_sec",
    "tokens/s": "tok_per_sec",
    "throughput(tps)": "tok_per_sec",
    "tps": "tok_per_sec",
    "wps": "tok_per_sec",
    "train_tokens_per_second": "tok_per_sec",
    "max_reserved(GiB)": "mem_peak_gb",
    "validation_loss": "eval_loss",
    "lm loss validation": "eval_loss",
    "Loss/val": "eval_loss",
    "Loss/test": "eval_loss",
    "eval_runtime": "seconds",
    "eval_samples": "n_samples",
    "ddtree_tau/8": "ddtree_tau_b8",
    "ddtree_tau/16": "ddtree_tau_b16",
    "ddtree_tau/32": "ddtree_tau_b32",
    "ddtree_tau/64": "ddtree_tau_b64",
    "mode": "event",
    "split": "event",
    "phase": "event",
    "stage": "event",
    "subset": "event",
    "type": "event",
}

# The rank that Hugging Face's trainer logs where no ranks are: of the one process that there is.
NO_RANK = -1

# What loggers that name the phase instead of the event say.
EVAL_WORDS = frozenset({"eval", "val", "valid", "validation", "validate", "test", "evaluate", "evaluation", "dev"})
TRAIN_WORDS = frozenset({"train", "training", "train_inner"})

# Loggers hang these before a key. What follows keeps its meaning, or is a figure of an evaluation.
_TRAIN_PREFIXES = (
    "train/",
    "training/",
    "trainer/",
    "metrics/",
    "optim/",
    "perf/",
    "profile/",
    "throughput/",
    "memory/",
)
_EVAL_PREFIXES = ("eval/", "val/", "valid/", "validation/", "validation_metrics/", "test/", "evaluation/", "dev/")
_EVAL_JOINED = ("eval_", "val_", "valid_", "validation_", "test_", "dev_")
# A dict under one of these names holds figures, and not a setting.
_PHASES = frozenset({"train", "training", "metrics", *EVAL_WORDS})

# Figures that training and evaluation both have: those that a prefix tells apart.
_MEASURED = frozenset(
    {"loss_ce", "loss_kl", "accuracy", "accept_len", "ddtree_streak8", "draft_top1_prob", "full_block_rate"}
    | {"position_acc", "prefix_acc", "accept_hist", "tau_linear_macro", "tau_linear_micro", "lookup_tau_macro"}
    | {"lossless", "ddtree_tau_b8", "ddtree_tau_b16", "ddtree_tau_b32", "ddtree_tau_b64", "walk_accept_len", "tau_gap"}
    | {"n_blocks", "tok_per_sec", "seconds", "n_samples"}
)
# Columns with a meaning of their own, which `train/time` or `perf/path` does not have.
_NEVER_PREFIXED = frozenset(
    {"time", "event", "rank", "name", "path", "reason", "best", "bytes", "exit_code", "seconds", "n_samples"}
)
# Only the summary at a training's end, or at an epoch's, has one of these; its loss is a mean and no point of a curve.
_SUMMARIES = frozenset({"train_runtime", "train/train_runtime", "train_num_updates"})
# One key a slot of the block: `position_1_acc`, `acc_0`.
_SLOT = re.compile(r"(?:.*/)?(?:position_(\d{1,3})_acc|acc_(\d{1,3}))(?:_epoch)?")

# Columns that say where a row stands, not what it measured: a log cannot set them.
_OURS = frozenset({"run", "attempt", "generation", "line_no", "extra"})
_NUMBERS = frozenset({"DOUBLE", "BIGINT", "INTEGER"})

# No log's own name is longer. What repeats a prefix a thousand times is no name.
_MAX_KEY_CHARS = 256
_MAX_LAYOUTS = 256


class Layout(NamedTuple):
    """Columns with their types and the keys that fill them, best first; the keys that fill none; and what the keys
    say of the row: that it is an evaluation or a summary. `slots` are the keys of a block's slots, in their order."""

    known: tuple[tuple[str, str, tuple[str, ...]], ...]
    unknown: tuple[str, ...]
    is_eval: bool = False
    is_summary: bool = False
    slots: tuple[str, ...] = ()


class Names:
    """Which key fills which column, best name first. `kinds` are the columns a log can fill, with their types."""

    def __init__(self, columns: Mapping[str, str], aliases: Mapping[str, str]) -> None:
        self.kinds = {name: kind for name, kind in columns.items() if name not in _OURS}
        for key, column in aliases.items():
            said = f"{paths.config_file()}: aliases: {key} = {column!r}"
            if column not in self.kinds:
                raise UsageError(f"{said}: there is no such column; {did_you_mean(column, self.kinds)}")
            if key in self.kinds and key != column:
                raise UsageError(f"{said}: {key!r} is itself a column, and stays it; remove the line")
        known = {**aliases, **{key: column for key, column in ALIASES.items() if key not in aliases}}
        self._aliases = {key: column for key, column in known.items() if column in self.kinds and key not in self.kinds}
        self._ranks = {key: rank for rank, key in enumerate(self._aliases, start=1)}
        self._layouts: dict[tuple[tuple[str, ...], bool], Layout] = {}
        self._opens: dict[tuple[str, ...], bool] = {}

    def column(self, key: str) -> str | None:
        """The column that `key` fills in any row, None for a key that we do not know."""
        if len(key) > _MAX_KEY_CHARS:
            return None
        if key in self.kinds:
            return key
        if column := self._aliases.get(key):
            return column
        if rest := _after(key, _TRAIN_PREFIXES):
            column = self.column(rest)
            return None if column in _NEVER_PREFIXED else column
        if rest := key.removeprefix("train_") if key.startswith("train_") else None:
            column = self.column(rest)
            return column if column in _MEASURED else None
        return "eval_loss" if self._of_eval(key) == "eval_loss" else None

    def is_plain(self, key: str) -> bool:
        """Whether a key says all by itself: what it means does not hang on the row's other keys."""
        if key in self.kinds:
            return True
        if key in _SUMMARIES or _SLOT.fullmatch(key):
            return False
        return _after(key, _EVAL_PREFIXES) is None and not self._is_joined_eval(key)

    def layout(self, keys: tuple[str, ...], *, is_eval: bool = False) -> Layout:
        """Where the keys of one record go, of an evaluation if the record says so itself. Logs have few layouts, so
        they are remembered."""
        if (layout := self._layouts.get((keys, is_eval))) is None:
            layout = self._lay_out(keys, is_eval)
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[keys, is_eval] = layout
        return layout

    def known(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Those of `keys` that fill a column in any row, by column, the best name first."""
        return self._by_column(keys, self.column)

    def opens(self, key: str, inner: Mapping[str, Any]) -> bool:
        """Whether a dict under this key holds figures: `{"train": {"loss": 2.5}}`, `{"lr": {"Muon": 0.1}}`."""
        path = (key, *inner)
        if (answer := self._opens.get(path)) is None:
            numbers = self.column(key) is not None and self.kinds[self.column(key) or ""] in _NUMBERS
            answer = key in _PHASES or numbers or any(self.column(f"{key}/{name}") for name in inner)
            if len(self._opens) >= _MAX_LAYOUTS:
                self._opens.clear()
            self._opens[path] = answer
        return answer

    def _lay_out(self, keys: tuple[str, ...], is_eval: bool) -> Layout:
        columns = {key: self.column(key) for key in keys}
        is_train = "loss" in columns.values() or any(
            _after(key, _TRAIN_PREFIXES) and (column in _MEASURED or column == "grad_norm")
            for key, column in columns.items()
        )
        is_summary = any(key in _SUMMARIES for key in keys) and not {"loss", "train/loss"} & columns.keys()
        if not is_summary and not is_eval:
            is_eval = not is_train and any(not self.is_plain(key) and self._looks_like_eval(key) for key in keys)
        find = self._of_summary if is_summary else self._of_eval_row if is_eval else self.column
        found = self._by_column(keys, find)
        known = tuple((column, self.kinds[column], tuple(given)) for column, given in found.items())
        taken = {key for given in found.values() for key in given}
        unknown = tuple(key for key in keys if key not in taken)
        slots = () if is_summary or "position_acc" in found else self._slots(unknown, is_eval)
        return Layout(known, unknown, is_eval, is_summary, slots)

    def _by_column(self, keys: Iterable[str], find: Any) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in sorted(keys, key=self._rank):
            if column := find(key):
                found.setdefault(column, []).append(key)
        return found

    def _rank(self, key: str) -> int:
        if key in self.kinds:
            return 0
        while rest := _after(key, _TRAIN_PREFIXES):
            key = rest
        return 1 if key in self.kinds else self._ranks.get(key, len(self._ranks) + 1)

    def _of_eval(self, key: str) -> str | None:
        """The column of a figure that its prefix makes one of an evaluation."""
        rest = _after(key, _EVAL_PREFIXES) or _after(key, _EVAL_JOINED)
        if rest is None:
            return None
        column = self.column(rest.removesuffix("_epoch").removeprefix("avg_"))
        if column in ("loss", "eval_loss"):
            return "eval_loss" if "eval_loss" in self.kinds else None
        return column if column in _MEASURED else "step" if rest == "num_updates" else None

    def _of_eval_row(self, key: str) -> str | None:
        return self.column(key) or self._of_eval(key)

    def _of_summary(self, key: str) -> str | None:
        column = self.column(key)
        return None if column in _MEASURED or column == "loss" else column

    def _is_joined_eval(self, key: str) -> bool:
        return _after(key, _EVAL_JOINED) is not None and (key in self._aliases or self._of_eval(key) is not None)

    def _looks_like_eval(self, key: str) -> bool:
        return _after(key, _EVAL_PREFIXES) is not None or self._is_joined_eval(key)

    def _slots(self, keys: Iterable[str], is_eval: bool) -> tuple[str, ...]:
        found = {}
        for key in keys:
            if (match := _SLOT.fullmatch(key)) and (is_eval or not self._looks_like_eval(key)):
                found[int(match[1] or match[2])] = key
        first = min(found, default=2)
        whole = first <= 1 and sorted(found) == list(range(first, first + len(found)))
        return tuple(found[slot] for slot in sorted(found)) if whole and "position_acc" in self.kinds else ()


def _after(key: str, prefixes: tuple[str, ...]) -> str | None:
    """What stands behind one of these prefixes; None where none of them stands, or nothing behind it."""
    if not key.startswith(prefixes):
        return None
    return next(key[len(prefix) :] for prefix in prefixes if key.startswith(prefix)) or None

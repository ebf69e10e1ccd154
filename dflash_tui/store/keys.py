"""Names of log keys: which column of `records` a key belongs to, and which words name an event.

The columns themselves are read from the database, so that sql/schema.sql stays their only list.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean

ALIASES: dict[str, str] = {
    "ts": "time",
    "timestamp": "time",
    "_timestamp": "time",
    "wall_time": "time",
    "learning_rate": "lr",
    "global_step": "step",
    "_step": "step",
    "iter": "step",
    "iteration": "step",
    "optimizer_step": "step",
    "topk_streak_8": "ddtree_streak8",
    "unary_top_k_oracle_accepted_length": "ddtree_streak8",
    "ce_loss": "loss_ce",
    "kl_div_loss": "loss_kl",
    "acc": "accuracy",
    "full_acc": "accuracy",
    "acceptance_length": "accept_len",
    "eal": "accept_len",
    "grad_norm_preclip": "grad_norm",
    "padding_efficiency": "padding_eff",
    "num_input_tokens_seen": "tokens_total",
    "tokens_per_sec": "tok_per_sec",
    "tokens_per_second": "tok_per_sec",
    "train_tokens_per_second": "tok_per_sec",
    "accuracy_position": "position_acc",
    "eval_runtime": "seconds",
    "eval_samples": "n_samples",
    "mode": "event",
}

# What loggers that name the phase instead of the event say for an evaluation.
EVAL_WORDS = frozenset({"val", "valid", "validation", "test", "evaluate", "evaluation"})

# Columns that say where a row stands, not what it measured: a log cannot set them.
_OURS = frozenset({"run", "attempt", "generation", "line_no", "extra"})


_MAX_LAYOUTS = 256


class Layout(NamedTuple):
    """Columns with their types and the keys that fill them, best first; and the keys that fill none."""

    known: tuple[tuple[str, str, tuple[str, ...]], ...]
    unknown: tuple[str, ...]


class Names:
    """Which key fills which column, best name first. `kinds` are the columns a log can fill, with their types."""

    def __init__(self, columns: Mapping[str, str], aliases: Mapping[str, str]) -> None:
        self.kinds = {name: kind for name, kind in columns.items() if name not in _OURS}
        known = {key: column for key, column in ALIASES.items() if column in self.kinds}
        for key, column in aliases.items():
            if column not in self.kinds:
                raise UsageError(
                    f"[aliases] {key} = {column!r}: there is no such column; {did_you_mean(column, self.kinds)}"
                )
            known[key] = column
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._columns = {key: column for key, column in known.items() if key not in self.kinds}

    def column(self, key: str) -> str | None:
        """The column that `key` fills, None for a key we do not know."""
        return key if key in self.kinds else self._columns.get(key)

    def layout(self, keys: tuple[str, ...]) -> Layout:
        """Where the keys of one record go. Logs have few layouts, so they are remembered."""
        if (layout := self._layouts.get(keys)) is None:
            known = tuple((column, self.kinds[column], tuple(given)) for column, given in self.known(keys).items())
            layout = Layout(known, tuple(key for key in keys if self.column(key) is None))
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[keys] = layout
        return layout

    def known(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Those of `keys` that fill a column, by column, the column's own name before its aliases."""
        found: dict[str, list[str]] = {}
        for key in sorted(keys, key=lambda key: key not in self.kinds):
            if column := self.column(key):
                found.setdefault(column, []).append(key)
        return found

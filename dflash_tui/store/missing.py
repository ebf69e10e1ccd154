"""Why a panel has nothing to show, in one sentence: never logged, null here, no rows here, or nothing matched.

A panel that says nothing hides a wrong key and a swapped variable alike; so each of these reads differently.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dflash_tui.runs import Window
from dflash_tui.store.base import ResolvedWindow
from dflash_tui.store.engine import duckdb
from dflash_tui.store.panel_files import Panel
from dflash_tui.text import numbered, visible

# Where the rows of a run may be missing altogether.
Table = Literal["core", "gpus"]

_NUM_KEYS_NAMED = 40
_NO_SAMPLES = "no GPU was sampled: that is done while a session or `watch` follows a run on a host that has GPUs"


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a panel looks at: those of `window`, and their steps `first` to `last` as the panel's parameters.

    Both are null where the panel wants all rows, with a step or without; then `rows` is asked only if it must be.
    """

    window: Window
    rows: Callable[[], ResolvedWindow]
    is_everything: bool

    @property
    def first(self) -> int | None:
        return None if self.is_everything else self.rows().first

    @property
    def last(self) -> int | None:
        return None if self.is_everything else self.rows().last


def never_logged(panel: Panel, keys: Collection[str], has_rows: Callable[[Table], bool]) -> str | None:
    """What the run has not logged so far of what the panel cannot do without; None if all is there."""
    if not keys:
        return "nothing has been logged yet"
    if _reads_steps(panel) and not has_rows("core"):
        return "no step has been logged yet"
    for need in panel.requires:
        if need.relation == "gpus":
            if not has_rows("gpus"):
                return _NO_SAMPLES
        elif not any(key in keys for key in need.keys):
            if need.relation == "evals" and not has_rows("core"):
                return "no evaluation has been logged yet"
            return f"{' or '.join(need.keys)} was never logged; this log has {_listed(keys)}"
    return None


def no_rows(panel: Panel, scope: Scope, whole: Callable[[], ResolvedWindow]) -> str | None:
    """That no row with a step lies in the panel's window, and what steps there are; None if one does."""
    if scope.is_everything or not _reads_steps(panel):
        return None
    rows = scope.rows()
    if rows.n == 0:
        first, last = whole().first, whole().last
        steps = "none of its rows has a step" if first is None else f"it has steps {first:,}..{last:,}"
        return f"no rows in {scope.window} of this run: {steps}"
    if rows.first is None:
        return f"none of the {numbered(rows.n, 'row')} ({scope.window}) has a step"
    return None


def nothing_matched(cursor: duckdb.DuckDBPyConnection, run_id: str, panel: Panel, scope: Scope) -> str:
    """Why the panel's SELECT gave nothing although rows and keys are there."""
    num_rows = scope.rows().n
    for need in panel.requires:
        if need.relation == "gpus":
            return _no_samples(cursor, run_id, scope)
        counts = [_count(cursor, run_id, need.relation, key, scope) for key in need.keys]
        num_rows = counts[0].rows
        what, name = ("row" if need.relation == "steps" else "evaluation"), " or ".join(need.keys)
        if num_rows == 0:
            return f"no {what}s ({scope.window})"
        if not any(count.logged for count in counts):
            return f"{name} is logged, but null in all {numbered(num_rows, what)} ({scope.window})"
        if not any(count.finite for count in counts):
            return f"{name} has only non-finite values: {sum(c.logged for c in counts):,} ({scope.window})"
    return f"the panel's filter matched 0 of {numbered(num_rows, 'row')} ({scope.window})"


def _no_samples(cursor: duckdb.DuckDBPyConnection, run_id: str, scope: Scope) -> str:
    [(n,)] = cursor.execute("select count(*) from gpus where run = $run", {"run": run_id}).fetchall()
    return f"none of the {n:,} samples of its GPUs was taken there ({scope.window})"


def _reads_steps(panel: Panel) -> bool:
    return not panel.requires or any(need.relation == "steps" for need in panel.requires)


def _listed(keys: Collection[str]) -> str:
    names = sorted(map(visible, keys))
    more = f" and {len(names) - _NUM_KEYS_NAMED:,} more" if len(names) > _NUM_KEYS_NAMED else ""
    return ", ".join(names[:_NUM_KEYS_NAMED]) + more


class _Count(NamedTuple):
    rows: int
    logged: int
    finite: int


def _count(
    cursor: duckdb.DuckDBPyConnection, run_id: str, relation: Literal["steps", "evals", "gpus"], key: str, scope: Scope
) -> _Count:
    kind = cursor.execute(
        "select data_type from duckdb_columns() where table_name = 'records' and column_name = $key", {"key": key}
    ).fetchall()
    params = {"run": run_id, "first": scope.first, "last": scope.last}
    if kind:
        # A name of the catalog's own, quoted all the same: a column cannot be bound.
        value = '"' + key.replace('"', '""') + '"'
    else:
        value, params = "(extra ->> $key)", params | {"key": key}
    finite = f"count_if(isfinite({value}))" if kind and kind[0][0] == "DOUBLE" else f"count({value})"
    sql = f"""
select count(*), count({value}), {finite} from {relation}
where run = $run and (step between $first and $last or $first is null)"""  # noqa: S608
    return _Count(*cursor.execute(sql, params).fetchall()[0])

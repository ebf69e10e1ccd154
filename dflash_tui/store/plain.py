"""Plain lines, parsed by DuckDB: one statement takes a slice of a log into `records` and says what it left.

A line is plain when it is one flat object whose values are numbers, lists of numbers where a column is one, or the
word "train" as its event; when no key stands twice and every number fits its column. That is what training loops
write all day: some 250 thousand lines a second and core. All else goes through exact.py, 30 times slower.
"""

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from dflash_tui.store.keys import Names
from dflash_tui.store.lines import Slice

# Integers of 19 digits and more may not fit 64 bits; json_merge_patch would round them.
_NUMBER = r"-?[0-9]{1,18}(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_KEY = r'"[^"\\\x00-\x1f\x{FFFD}]+": ?'
_LIST = rf"\[({_NUMBER}(, ?{_NUMBER})*)?\]"
_PLAIN_KINDS = frozenset({"DOUBLE", "BIGINT", "INTEGER", "DOUBLE[]"})
_SAMPLES = 16


class PlainStatement(NamedTuple):
    """`sql` takes $text, $num_lines, $line_no, $run, $attempt and $generation, and the parameters in `params`.

    `columns` are those whose presence the answer tells, see `PlainAnswer`.
    """

    sql: str
    params: dict[str, str]
    columns: tuple[str, ...]


class PlainAnswer(NamedTuple):
    """What one statement did: the lines it left (by index), how many it took, and of the train rows of rank 0 among
    them, in order, index, step and epoch; which columns were ever given, and which keys that we do not know."""

    left: list[int] | None
    num_taken: int
    num_without_step: int
    at: list[int] | None
    steps: list[int] | None
    epochs: list[float | None] | None
    given: list[bool]
    unknown_keys: list[str] | None


def keys_in(part: Slice) -> frozenset[str]:
    """The keys of some lines of a slice, spread over it. A line with others is still read rightly, but slowly."""
    size = len(part.data)
    found: set[bytes] = set()
    for start in range(0, size, max(1, size // _SAMPLES)):
        begin = part.data.rfind(b"\n", 0, start) + 1
        end = part.data.find(b"\n", start)
        found.update(re.findall(rb'"([^"\\]{1,200})":', part.data[begin : end if end >= 0 else size][:8192]))
    return frozenset(key.decode(errors="replace") for key in found)


def plain_statement(names: Names, keys: Collection[str]) -> PlainStatement:
    """The statement for logs that have these keys: a struct of the columns that are there is three times as fast as
    one of all columns."""
    known = {column: tuple(given) for column, given in names.known(keys).items() if names.kinds[column] in _PLAIN_KINDS}
    if "event" in keys:
        known["event"] = ("event",)
    return _build(tuple((column, names.kinds[column], given) for column, given in sorted(known.items())))


@lru_cache(maxsize=64)
def _build(known: tuple[tuple[str, str, tuple[str, ...]], ...]) -> PlainStatement:
    given = [key for _, _, keys in known for key in keys]
    lists = "|".join(re.escape(key) for _, kind, keys in known for key in keys if kind == "DOUBLE[]")
    pair = rf'{_KEY}{_NUMBER}|"event": ?"train"' + (rf'|"({lists})": ?{_LIST}' if lists else "")
    spec = {key: _read_as(kind) for _, kind, keys in known for key in keys}
    # A struct needs a field: this one is never there.
    spec = spec or {"\ufffd": "DOUBLE"}
    cells = " + ".join(f"({_field(key)} is not null)::int" for key in given) or "0"
    columns = [(column, kind, keys) for column, kind, keys in known if column != "event"]
    targets = "".join(f', "{column}"' for column, _, _ in columns)
    values_by = {column: _value(kind, keys) for column, kind, keys in columns}
    step, epoch, rank = (values_by.get(column, "null") for column in ("step", "epoch", "rank"))
    values = "".join(f", {value}" for value in values_by.values())
    fits = " and ".join(_fits(kind, keys) for _, kind, keys in columns) or "true"
    has = ", ".join(f"count(coalesce({', '.join(map(_field, keys))})) > 0" for _, _, keys in columns)
    # Only names of columns and their aliases become part of the text, quoted; what a log holds is bound.
    sql = f"""
with cut as materialized (
  select unnest(string_split($text, chr(10))) as line, unnest(range($num_lines)) as i
), read as materialized (
  select line, i, (strlen(line) - strlen(replace(line, '":', ''))) // 2 as num_pairs,
    case when regexp_full_match(line, $plain) and json_valid(line) then json_transform(line, $spec) end as s
  from cut
), counted as (
  select *, {cells} as num_cells,
    case when s is not null and num_pairs > {cells} then json_merge_patch(line, $known) end as extra
  from read
), judged as materialized (
  select i, s, extra, {_event(known)} as event, s is null and trim(line, ' ' || chr(9) || chr(13)) = '' as is_blank,
    coalesce(s is not null and num_pairs - num_cells = coalesce(len(json_keys(extra)), 0) and {fits}, false) as is_plain
  from counted
), taken as (
  insert into records (run, attempt, generation, line_no, event{targets}, extra)
  select $run, $attempt, $generation, $line_no + i, event{values}, extra from judged where is_plain
  returning 1
), plain as (
  select i, {step} as step, {epoch} as epoch, event, s, coalesce({rank}, 0) = 0 as is_first from judged where is_plain
), train as (
  select list(i order by i) as at, list(step order by i) as steps, list(epoch order by i) as epochs
  from plain where event = 'train' and is_first and step is not null
), told as (
  select count(*), count(*) filter (where event = 'train' and is_first and step is null), [{has}] as given from plain
)
select (select list(i order by i) from judged where not is_plain and not is_blank), told.* exclude (given), train.*,
  given, (select list(distinct key) from (select unnest(json_keys(extra)) as key from judged where is_plain))
from told, train
"""  # noqa: S608
    params = {
        "plain": rf"\s*\{{(({pair})(, ?|\}}))+\s*",
        "spec": json.dumps(spec),
        "known": json.dumps(dict.fromkeys(given)),
    }
    return PlainStatement(sql, params, tuple(column for column, _, _ in columns))


def _field(key: str) -> str:
    return 's."' + key.replace('"', '""') + '"'


def _read_as(kind: str) -> str:
    # As DOUBLE first: DuckDB would round 2.7 to a BIGINT without a word.
    return "DOUBLE" if kind in ("BIGINT", "INTEGER") else kind


def _value(kind: str, keys: tuple[str, ...]) -> str:
    value = f"coalesce({', '.join(map(_field, keys))})"
    return f"{value}::{kind}" if kind in ("BIGINT", "INTEGER") else value


def _fits(kind: str, keys: tuple[str, ...]) -> str:
    """Whether a column is given once at most, and as a whole number that a double holds exactly where it counts."""
    terms = [f"{' + '.join(f'({_field(key)} is not null)::int' for key in keys)} <= 1"] if len(keys) > 1 else []
    if kind in ("BIGINT", "INTEGER"):
        limit = 2**53 if kind == "BIGINT" else 2**31
        terms += [f"coalesce(abs({f}) < {limit} and {f} = floor({f}), true)" for f in map(_field, keys)]
    return " and ".join(terms) or "true"


def _event(known: tuple[tuple[str, str, tuple[str, ...]], ...]) -> str:
    """The event of a line that names none, as in `exact.event_of`."""
    keys = {column: given for column, _, given in known}
    named = "s.event is not null" if "event" in keys else "false"
    if "eval_loss" not in keys:
        return "case when num_cells = 0 then 'note' else 'train' end"
    loss = "s.loss is null" if "loss" in keys else "true"
    return (
        f"case when {named} then 'train' when s.eval_loss is not null and {loss} then 'eval'"
        " when num_cells = 0 then 'note' else 'train' end"
    )

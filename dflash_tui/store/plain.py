"""Plain lines, parsed by DuckDB: one statement takes a slice of a log into `records` and says what it left.

A line is plain when it is one flat object whose values are numbers, lists of numbers where a column is one, or the
word "train" as its event; when no key stands twice and every number fits its column. That is what training loops
write all day: some 160 thousand lines a second and core. All else goes through exact.py, four times slower.
"""

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from dflash_tui.store.keys import Names
from dflash_tui.store.lines import Slice

# As JSON has them, so that what matches needs no other check; DuckDB's own reader lets trailing commas through.
# Integers of 19 digits and more may not fit 64 bits: json_merge_patch would round them.
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_KEY = r'"[^"\\\x00-\x1f\x{FFFD}]+": ?'
_LIST = rf"\[(?:{_NUMBER}(?:, ?{_NUMBER})*)?\]"
_PLAIN_KINDS = frozenset({"DOUBLE", "BIGINT", "INTEGER", "BOOLEAN", "DOUBLE[]"})
_SAMPLES = 16
# Every key of the line fills a column or is one that we expected, none stands twice, none is null.
_ALL_TAKEN = (
    "num_pairs - num_cells = coalesce(len(json_keys(extra)), 0)"
    " and (extra is null or list_has_all($unknown, json_keys(extra)))"
)


class Column(NamedTuple):
    """A column, its type, and the keys that fill it in the logs that a statement is for, best first."""

    name: str
    kind: str
    keys: tuple[str, ...]


class PlainStatement(NamedTuple):
    """`sql` takes $text, $num_lines, $line_no, $run, $attempt and $generation, and the parameters in `params`.

    Its one row is a `PlainAnswer`, whose `given` goes with `unseen`.
    """

    sql: str
    params: dict[str, str | list[str]]
    unseen: tuple[str, ...]


class PlainAnswer(NamedTuple):
    """What one statement took: how many rows, and of each, in any order, its line, step and epoch; the step is null
    for a row that is no train row of rank 0. Then which columns were ever given, and the keys that we do not know."""

    num_rows: int
    num_train: int
    lines: list[int] | None
    steps: list[int | None] | None
    epochs: list[float | None] | None
    given: list[bool]
    unknown_keys: list[list[str]] | None


def keys_in(part: Slice) -> frozenset[str]:
    """The keys of some lines of a slice, spread over it. A line with others is still read rightly, but slowly."""
    size = len(part.data)
    found: set[bytes] = set()
    for start in range(0, size, max(1, size // _SAMPLES)):
        begin = part.data.rfind(b"\n", 0, start) + 1
        end = part.data.find(b"\n", start)
        found.update(re.findall(rb'"([^"\\]{1,200})":', part.data[begin : end if end >= 0 else size][:8192]))
    return frozenset(key.decode(errors="replace") for key in found)


def plain_statement(names: Names, keys: Collection[str], seen: Collection[str]) -> PlainStatement:
    """The statement for logs that have these keys, of which the run has `seen` some columns before.

    It names the columns that are there and no others: planned anew for every slice, one of all columns takes three
    times as long. A line with a key that is not among `keys` is left, and so is one with a key whose meaning hangs on
    the others.
    """
    keys = [key for key in keys if names.is_plain(key)]
    known = {column: tuple(given) for column, given in names.known(keys).items() if names.kinds[column] in _PLAIN_KINDS}
    if "event" in keys:
        known["event"] = ("event",)
    columns = tuple(Column(name, names.kinds[name], given) for name, given in sorted(known.items()))
    unseen = tuple(name for name in known if name not in seen and name != "event")
    return _build(columns, unseen, tuple(sorted(key for key in keys if names.column(key) is None)))


@lru_cache(maxsize=64)
def _build(columns: tuple[Column, ...], unseen: tuple[str, ...], unknown: tuple[str, ...]) -> PlainStatement:
    keys = [key for column in columns for key in column.keys]
    # A struct needs a field: this one is never there.
    spec = {key: _read_as(column.kind) for column in columns for key in column.keys} or {"\ufffd": "DOUBLE"}
    values = {column.name: _value(column) for column in columns if column.name != "event"}
    names = [f'"{name}"' for name in values]
    step, epoch, rank = (f'"{name}"' if name in values else "null" for name in ("step", "epoch", "rank"))
    is_train = f"event = 'train' and coalesce({rank}, 0) = 0"
    cells = ", ".join(f"case when {_field(key)} is not null then 1 end" for key in keys)
    extra = "case when num_pairs > num_cells then json_merge_patch(line, $known) end" if unknown else "null::json"
    fits = [_ALL_TAKEN if unknown else "num_pairs = num_cells", *filter(None, map(_fits, columns))]
    # Only names of columns and their aliases become part of the text, quoted; what a log holds is bound. The limit
    # keeps the filter from moving down, where it would parse every line a second time.
    sql = f"""
with taken as (
  insert into records (run, attempt, generation, line_no, event{"".join(f", {name}" for name in names)}, extra)
  select $run, $attempt, $generation, $line_no + i, {_event(columns)}, {"".join(f"{v}, " for v in values.values())}extra
  from (select *, {extra} as extra from (select *, list_count([{cells}]) as num_cells from (
      select line, i, (strlen(line) - strlen(replace(line, '":', ''))) // 2 as num_pairs,
        json_transform(case when regexp_full_match(line, $plain) then line end, $spec) as s
      from (select unnest(string_split($text, chr(10))) as line, unnest(range($num_lines)) as i)
      limit $num_lines)
    where s is not null))
  where {" and ".join(fits)}
  returning line_no, event, extra{"".join(f", {name}" for name in names)}
)
select count(*), count(*) filter (where {is_train}), list(line_no), list(case when {is_train} then {step} end),
  list({epoch}), [{", ".join(f'count("{name}") > 0' for name in unseen)}],
  {"list(distinct json_keys(extra)) filter (where extra is not null)" if unknown else "null"}
from taken
"""  # noqa: S608
    params: dict[str, str | list[str]] = {"plain": _pattern(columns), "spec": json.dumps(spec)}
    if unknown:
        params |= {"known": json.dumps(dict.fromkeys(keys)), "unknown": list(unknown)}
    return PlainStatement(sql, params, unseen)


def _pattern(columns: tuple[Column, ...]) -> str:
    pairs = [f"{_KEY}{_NUMBER}", '"event": ?"train"']
    for kind, value in (("DOUBLE[]", _LIST), ("BOOLEAN", "(?:true|false)")):
        keys = [re.escape(key) for column in columns for key in column.keys if column.kind == kind]
        if keys:
            pairs.append(f'"(?:{"|".join(keys)})": ?{value}')
    pair = f"(?:{'|'.join(pairs)})"
    return rf"\{{(?:{pair}, ?)*{pair}\}}\s*"


def _field(key: str) -> str:
    return 's."' + key.replace('"', '""') + '"'


def _read_as(kind: str) -> str:
    # DuckDB would round 2.7 to a BIGINT and take 1 for true, without a word.
    return {"BIGINT": "DOUBLE", "INTEGER": "DOUBLE", "BOOLEAN": "VARCHAR"}.get(kind, kind)


def _value(column: Column) -> str:
    fields = [_field(key) for key in column.keys]
    value = f"coalesce({', '.join(fields)})" if len(fields) > 1 else fields[0]
    if column.kind == "BOOLEAN":
        return f"{value} = 'true'"
    return f"{value}::{column.kind}" if column.kind in ("BIGINT", "INTEGER") else value


def _fits(column: Column) -> str:
    """Whether a column is given once at most, and as what it holds: a whole number exactly, a truth as its word."""
    fields = [_field(key) for key in column.keys]
    terms = [f"{' + '.join(f'({field} is not null)::int' for field in fields)} <= 1"] if len(fields) > 1 else []
    if column.kind in ("BIGINT", "INTEGER"):
        limit = 2**53 if column.kind == "BIGINT" else 2**31
        terms += [f"coalesce(abs({field}) < {limit} and {field} = floor({field}), true)" for field in fields]
    if column.kind == "BOOLEAN":
        terms += [f"coalesce({field} in ('true', 'false'), true)" for field in fields]
    return " and ".join(terms)


def _event(columns: tuple[Column, ...]) -> str:
    """The event of a line that names none, as in `exact.event_of`."""
    names = {column.name for column in columns}
    if "eval_loss" not in names:
        return "case when num_cells = 0 then 'note' else 'train' end"
    named = "s.event is not null" if "event" in names else "false"
    loss = "s.loss is null" if "loss" in names else "true"
    return (
        f"case when {named} then 'train' when s.eval_loss is not null and {loss} then 'eval'"
        " when num_cells = 0 then 'note' else 'train' end"
    )

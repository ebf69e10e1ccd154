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

# As JSON has them, so that what matches needs no other check; DuckDB's own reader lets trailing commas through.
# Integers of 19 digits and more may not fit 64 bits: json_merge_patch would round them.
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_KEY = r'"[^"\\\x00-\x1f\x{FFFD}]+": ?'
_LIST = rf"\[(?:{_NUMBER}(?:, ?{_NUMBER})*)?\]"
_PLAIN_KINDS = frozenset({"DOUBLE", "BIGINT", "INTEGER", "BOOLEAN", "DOUBLE[]"})
_SAMPLES = 16


class PlainStatement(NamedTuple):
    """`sql` takes $text, $num_lines, $line_no, $run, $attempt and $generation, and the parameters in `params`.

    Its one row is a `PlainAnswer`, whose `given` goes with `columns`.
    """

    sql: str
    params: dict[str, str]
    columns: tuple[str, ...]


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


def plain_statement(names: Names, keys: Collection[str]) -> PlainStatement:
    """The statement for logs that have these keys: a struct of the columns that are there is three times as fast as
    one of all columns."""
    known = {column: tuple(given) for column, given in names.known(keys).items() if names.kinds[column] in _PLAIN_KINDS}
    if "event" in keys:
        known["event"] = ("event",)
    return _build(tuple((column, names.kinds[column], given) for column, given in sorted(known.items())))


@lru_cache(maxsize=64)
def _build(known: tuple[tuple[str, str, tuple[str, ...]], ...]) -> PlainStatement:
    keys = [key for _, _, given in known for key in given]
    # A struct needs a field: this one is never there.
    spec = {key: _read_as(kind) for _, kind, given in known for key in given} or {"\ufffd": "DOUBLE"}
    num_cells = " + ".join(f"({_field(key)} is not null)::int" for key in keys) or "0"
    columns = [(column, kind, given) for column, kind, given in known if column != "event"]
    values = {column: _value(kind, given) for column, kind, given in columns}
    fits = [_fits(kind, given) for _, kind, given in columns]
    names = [f'"{column}"' for column, _, _ in columns]
    step, epoch, rank = (f'"{name}"' if name in values else "null" for name in ("step", "epoch", "rank"))
    is_train = f"event = 'train' and coalesce({rank}, 0) = 0"
    # Only names of columns and their aliases become part of the text, quoted; what a log holds is bound. The limit
    # keeps the filter from moving down, where it would parse every line a second time.
    sql = f"""
with taken as (
  insert into records (run, attempt, generation, line_no, event{"".join(f", {name}" for name in names)}, extra)
  select $run, $attempt, $generation, $line_no + i, {_event(known)}, {"".join(f"{v}, " for v in values.values())}extra
  from (
    select *, {num_cells} as num_cells,
      case when num_pairs > {num_cells} then json_merge_patch(line, $known) end as extra
    from (
      select line, i, (strlen(line) - strlen(replace(line, '":', ''))) // 2 as num_pairs,
        json_transform(case when regexp_full_match(line, $plain) then line end, $spec) as s
      from (select unnest(string_split($text, chr(10))) as line, unnest(range($num_lines)) as i)
      limit $num_lines)
    where s is not null)
  where {" and ".join(["num_pairs - num_cells = coalesce(len(json_keys(extra)), 0)", *filter(None, fits)])}
  returning line_no, event, extra{"".join(f", {name}" for name in names)}
)
select count(*), count(*) filter (where {is_train}),
  list(line_no), list(case when {is_train} then {step} end), list({epoch}),
  [{", ".join(f"count({name}) > 0" for name in names)}],
  list(distinct json_keys(extra)) filter (where extra is not null)
from taken
"""  # noqa: S608
    params = {
        "plain": _pattern(known),
        "spec": json.dumps(spec),
        "known": json.dumps(dict.fromkeys(keys)),
    }
    return PlainStatement(sql, params, tuple(column for column, _, _ in columns))


def _pattern(known: tuple[tuple[str, str, tuple[str, ...]], ...]) -> str:
    pairs = [f"{_KEY}{_NUMBER}", '"event": ?"train"']
    for kind, value in (("DOUBLE[]", _LIST), ("BOOLEAN", "(?:true|false)")):
        keys = [re.escape(key) for _, found, keys in known for key in keys if found == kind]
        if keys:
            pairs.append(f'"(?:{"|".join(keys)})": ?{value}')
    pair = f"(?:{'|'.join(pairs)})"
    return rf"\{{(?:{pair}, ?)*{pair}\}}\s*"


def _field(key: str) -> str:
    return 's."' + key.replace('"', '""') + '"'


def _read_as(kind: str) -> str:
    # DuckDB would round 2.7 to a BIGINT and take 1 for true, without a word.
    return {"BIGINT": "DOUBLE", "INTEGER": "DOUBLE", "BOOLEAN": "VARCHAR"}.get(kind, kind)


def _value(kind: str, keys: tuple[str, ...]) -> str:
    value = f"coalesce({', '.join(map(_field, keys))})" if len(keys) > 1 else _field(keys[0])
    if kind == "BOOLEAN":
        return f"{value} = 'true'"
    return f"{value}::{kind}" if kind in ("BIGINT", "INTEGER") else value


def _fits(kind: str, keys: tuple[str, ...]) -> str:
    """Whether a column is given once at most, and as what it holds: a whole number exactly, a truth as its word."""
    terms = [f"{' + '.join(f'({_field(key)} is not null)::int' for key in keys)} <= 1"] if len(keys) > 1 else []
    if kind in ("BIGINT", "INTEGER"):
        limit = 2**53 if kind == "BIGINT" else 2**31
        terms += [f"coalesce(abs({f}) < {limit} and {f} = floor({f}), true)" for f in map(_field, keys)]
    if kind == "BOOLEAN":
        terms += [f"coalesce({f} in ('true', 'false'), true)" for f in map(_field, keys)]
    return " and ".join(terms)


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

"""Lines -> a staging table: parsed by DuckDB, counted, and only then ready to be copied to where they stay.

DuckDB reads the lines from a file that is there for as long as that takes, in the one folder that a locked-down
database may read, its own for what does not fit in memory: given as a text, to be split, they cost half as much again.
The staging tables lie in a database in memory, so that several threads may fill them while the writer's transaction is
elsewhere. A count that is not what the forms of the lines promise (a number that is none, a step that is no whole
number) means that the lines are taken again, by halves, until the few that are odd are read one by one.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

from dflash_tui.errors import DflashError
from dflash_tui.store.engine import duckdb
from dflash_tui.store.keys import NO_RANK
from dflash_tui.store.logged import OTHER_ROWS, STEP_ROWS, Logged

SCHEMA = "staging"
_tables = count(1)
# So many rows are read by one thread, in their order.
_ROW_GROUP = 122_880
# Line, step and epoch of a train row of rank 0 that has a step.
TrainRow = tuple[int, int, float | None]
_IS_TRAIN = "coalesce(named, said) = 'train' and coalesce(rank, 0) = 0"
_HAS_STEP = f"{_IS_TRAIN} and step is not null"


@dataclass(slots=True)
class Pieces:
    """Lines on their way into one staging table, in order: texts of whole lines that stand behind one another in a
    source, and what their rows must come to. A source is a number that the caller gives to a file."""

    sources: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    line_nos: list[int] = field(default_factory=list)
    nums: list[int] = field(default_factory=list)
    said: list[str | None] = field(default_factory=list)
    are_raw: list[bool] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    has_unknown: bool = False
    cells: Counter[str] = field(default_factory=Counter)

    def add(self, source: int, line_no: int, num_lines: int, text: bytes, said: str | None, *, is_raw: bool) -> None:
        self.sources.append(source)
        self.line_nos.append(line_no)
        self.nums.append(num_lines)
        self.texts.append(text)
        self.said.append(said)
        self.are_raw.append(is_raw)


class SourceCount(NamedTuple):
    """What a staging table holds of one source; `num_train` and the steps are of train rows of rank 0."""

    num_rows: int
    num_train: int
    num_without_step: int
    keys: set[str]
    is_rising: bool
    first_step: int | None
    last_step: int | None
    last_epoch: float | None


class Staged(NamedTuple):
    """A staging table, the cells that some of its rows have, whether some have keys that we do not know, and into which
    tables its rows go."""

    table: str
    columns: tuple[str, ...]
    has_extra: bool
    targets: tuple[str, ...] = ()


def stage(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    kinds: dict[str, str],
    pieces: Pieces,
    is_unknown: Callable[[str], bool],
) -> tuple[Staged, dict[int, SourceCount]] | None:
    """The table that holds `pieces`, and what it holds of each source; None when they are not what they looked like.

    `folder` is where the database may read, `is_unknown` tells of a key that it fills no column. DflashError when
    nothing can be written there."""
    number = next(_tables)
    table = f"{SCHEMA}.part_{number}"
    keys, columns = tuple(sorted(pieces.keys.items())), tuple(sorted(pieces.columns))
    statement = _statement(keys, columns, tuple(kinds.items()), has_unknown=pieces.has_unknown)
    text = pieces.texts[0] if len(pieces.texts) == 1 else b"\n".join(pieces.texts)
    with _written(folder / f"part_{number}.jsonl", text) as file:
        params = {"file": str(file), "num_bytes": _longest(text), "spec": statement.spec, **_places(pieces)}
        if pieces.has_unknown:
            params |= {
                "spec": json.dumps(statement.spec),
                "known": json.dumps(dict.fromkeys([*pieces.keys, *pieces.nulls])),
            }
        try:
            db.execute(f"create table {table} as {statement.sql}", params)
        except (duckdb.InvalidInputException, duckdb.BinderException):
            return None  # A number that is none fails the whole statement, and so do keys that differ in case only.
    staged = Staged(table, statement.columns, pieces.has_unknown or "extra" in pieces.columns)
    found = _count(db, staged, sum(pieces.nums))
    total: Counter[str] = Counter()
    for cells, _ in found.values():
        total.update(cells)
    is_right = total == pieces.cells and sum(counted.num_rows for _, counted in found.values()) == sum(pieces.nums)
    if not (is_right and (not pieces.has_unknown or all(map(is_unknown, _unknown_keys(db, staged))))):
        drop(db, [staged])
        return None
    counts = {source: counted for source, (_, counted) in found.items()}
    return staged._replace(targets=_targets(counts.values())), counts


def _targets(counts: Collection[SourceCount]) -> tuple[str, ...]:
    num_rows = sum(counted.num_rows for counted in counts)
    num_train = sum(counted.num_train for counted in counts)
    return (STEP_ROWS,) * (num_train > 0) + (OTHER_ROWS,) * (num_rows > num_train)


def _longest(text: bytes) -> int:
    """More bytes than any line of it has. DuckDB takes memory by this number."""
    window = 1 << 19
    if all(text.find(b"\n", at, at + window) >= 0 for at in range(0, len(text) - window, window)):
        return 2 * window
    return len(text) + 1


@contextmanager
def _written(file: Path, text: bytes) -> Iterator[Path]:
    """The file with this text, while the `with` lasts."""
    try:
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            file.write_bytes(text)
        except OSError as e:
            raise DflashError(f"{file}: cannot be written ({e.strerror})") from e
        yield file
    finally:
        with suppress(OSError):
            file.unlink()


def drop(db: duckdb.DuckDBPyConnection, parts: Sequence[Staged]) -> None:
    for part in parts:
        db.execute(f"drop table {part.table}")


def drop_all(db: duckdb.DuckDBPyConnection) -> None:
    """What an error left, of whatever thread."""
    rows = db.execute("select table_name from duckdb_tables() where database_name = $1", [SCHEMA]).fetchall()
    for (name,) in rows:
        db.execute(f"drop table {SCHEMA}.{name}")


def _places(pieces: Pieces) -> dict[str, Any]:
    """What `_PLACES` takes."""
    return {
        "sources": pieces.sources,
        "line_nos": pieces.line_nos,
        "nums": pieces.nums,
        "said": pieces.said,
        "raw": pieces.are_raw,
    }


# Where each row belongs, in their order.
_PLACES = """select source, said, is_raw, unnest(range(line_no, line_no + num)) as line_no
  from (select unnest($sources::int[]) as source, unnest($said::varchar[]) as said, unnest($raw::boolean[]) as is_raw,
    unnest($line_nos::bigint[]) as line_no, unnest($nums::int[]) as num)"""
_TYPED = """read_json($file, format := 'newline_delimited', maximum_object_size := $num_bytes, columns := $spec)"""
# What we do not know of a line is found in its text.
_WITH_TEXT = """(select {cells}, line from (select json as line, json_transform(json, $spec) as s
  from read_ndjson_objects($file, maximum_object_size := $num_bytes)))"""


class _Statement(NamedTuple):
    sql: str
    spec: dict[str, str]
    columns: tuple[str, ...]


@lru_cache(maxsize=64)
def _statement(
    keys: tuple[tuple[str, str], ...],
    columns: tuple[str, ...],
    kinds: tuple[tuple[str, str], ...],
    *,
    has_unknown: bool,
) -> _Statement:
    """A SELECT of staged rows for lines with these keys (and rows of our own that fill these columns).

    Only names of columns and keys of the log become part of the text, quoted; all else is bound.
    """
    kind_of = {**dict(kinds), "extra": "JSON"}
    spec = {key: _read_as(kind_of[column]) for key, column in keys}
    spec |= {f"={column}": kind_of[column] for column in columns}
    spec = spec or {"=": "DOUBLE"}
    # The names of keys could be our own.
    alias = {key: f"c{n}" for n, key in enumerate(spec)}
    values: dict[str, list[str]] = {}
    for key, column in keys:
        values.setdefault(column, []).append(_value(column, kind_of[column], alias[key]))
    for column in columns:
        values.setdefault(column, []).append(alias[f"={column}"])
    # Of a null, json_merge_patch makes the patch itself.
    rest = "case when is_raw then nullif(json_merge_patch(line, $known), '{}') end"
    extra = ([rest] if has_unknown else []) + values.pop("extra", []) or ["null"]
    named = values.pop("event", ["null::varchar"])
    cells = [f'{_first(given)} as "{column}"' for column, given in values.items()]
    for column, kind in (("step", "bigint"), ("epoch", "double"), ("rank", "int")):
        if column not in values:
            cells.append(f"null::{kind} as {column}")
    lines = _WITH_TEXT.format(cells=", ".join(map(_field, spec))) if has_unknown else _TYPED
    if has_unknown:
        cells.append("is_raw")
    sql = f"""
select source, line_no, said, {_first(named)} as named, {", ".join(cells)}, {_first(extra)}::json as extra
from {lines} as lines({", ".join(alias.values())}{", line" if has_unknown else ""}) positional join ({_PLACES})
"""  # noqa: S608
    return _Statement(sql, spec, tuple(sorted(values)))


def _first(values: list[str]) -> str:
    return f"coalesce({', '.join(values)})" if len(values) > 1 else values[0]


def _field(key: str) -> str:
    return 's."' + key.replace('"', '""') + '"'


def _read_as(kind: str) -> str:
    # DuckDB would round 2.7 to a BIGINT without a word.
    return "DOUBLE" if kind in ("BIGINT", "INTEGER") else kind


def _value(column: str, kind: str, cell: str) -> str:
    if column == "rank":
        cell = f"if({cell} = {NO_RANK}, 0, {cell})"
    if kind not in ("BIGINT", "INTEGER"):
        return cell
    limit = 2**53 if kind == "BIGINT" else 2**31
    return f"case when {cell} = floor({cell}) and abs({cell}) < {limit} then {cell}::{kind} end"


def _count(db: duckdb.DuckDBPyConnection, staged: Staged, num_rows: int) -> dict[int, tuple[Counter[str], SourceCount]]:
    """Of each source, the cells and unknown keys that are there, and what the rules of a resume ask."""
    order = " order by rowid" if num_rows > _ROW_GROUP else ""
    cells = "".join(f', count("{column}")' for column in staged.columns)
    # Even of a single row each of these costs a millisecond to plan.
    unknown_keys = "list(distinct json_keys(json_merge_patch('{}', extra))) filter (extra is not null)"
    extra = f"sum(len(list_distinct(json_keys(extra)))), {unknown_keys}" if staged.has_extra else "0, null"
    rows = db.execute(f"""
select source, count(*), count(*) filter ({_IS_TRAIN} and step is null), list(step{order}) filter ({_HAS_STEP}),
  (arg_max({{'epoch': epoch}}, rowid) filter ({_HAS_STEP})).epoch, {extra}, count(named){cells}
from {staged.table} group by source""").fetchall()  # noqa: S608
    found = {}
    for source, num_here, num_without, steps, last_epoch, num_unknown, unknown, num_named, *counts in rows:
        there = Counter({column: n for column, n in zip(staged.columns, counts, strict=True) if n})
        keys = {*there, *(key for keys in unknown or () for key in keys)}
        there += Counter({"event": num_named, "extra": int(num_unknown or 0)})
        is_rising = all(map(lt, steps or (), steps[1:] if steps else ()))
        first, last = (steps[0], steps[-1]) if steps else (None, None)
        num_train = num_without + len(steps or ())
        counted = SourceCount(num_here, num_train, num_without, keys, is_rising, first, last, last_epoch)
        found[source] = (there, counted)
    return found


def _unknown_keys(db: duckdb.DuckDBPyConnection, staged: Staged) -> list[str]:
    """The keys that lines which came as they are have left in `extra`."""
    sql = f"select distinct unnest(json_keys(extra)) from {staged.table} where is_raw"  # noqa: S608
    return [key for (key,) in db.execute(sql).fetchall()]


def train_rows(db: duckdb.DuckDBPyConnection, staged: Staged, source: int) -> list[TrainRow]:
    """The train rows of a source, in order."""
    sql = f"select line_no, step, epoch from {staged.table} where {_HAS_STEP} and source = $1 order by rowid"  # noqa: S608
    return db.execute(sql, [source]).fetchall()


class Place(NamedTuple):
    """Where the rows of a source belong."""

    source: int
    run_id: str
    generation: int
    attempt: int


def copy_rows(db: duckdb.DuckDBPyConnection, logged: Logged, staged: Staged, places: Sequence[Place]) -> None:
    """Append the rows of a staging table to those that stay."""
    # One table after the other: put together by `union all`, several threads would write row groups that are half full,
    # and the next checkpoint would write them again.
    targets = logged.targets(staged.columns)
    columns = "".join(f", {name}" for name, _ in targets)
    values = "".join(f", {value}" for _, value in targets)
    by_source = {place.source: place[1:] for place in places}
    nowhere = ("", 0, 0)
    runs = [by_source.get(source, nowhere) for source in range(max(by_source) + 1)]
    for target in staged.targets:
        which = "" if len(staged.targets) == 1 else f" where ({_IS_TRAIN}) = {target == STEP_ROWS}"
        db.execute(
            f"insert into {target} (run, attempt, generation, line_no, event{columns}, extra)"  # noqa: S608
            " select ($1::varchar[])[source + 1], ($3::int[])[source + 1], ($2::int[])[source + 1], line_no,"
            f" coalesce(named, said){values}, extra from {staged.table}{which}",
            [list(column) for column in zip(*runs, strict=True)],
        )

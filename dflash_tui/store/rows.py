"""One slice of a log -> rows of `records` and `rejects`. Says what it saw; knows no cursor and no transaction."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import duckdb

from dflash_tui.store.base import RejectedLine
from dflash_tui.store.exact import as_json, row_of
from dflash_tui.store.keys import Names
from dflash_tui.store.lines import KEPT_CHARS, MAX_LINE_BYTES, Slice
from dflash_tui.store.plain import PlainAnswer, keys_in, plain_statement
from dflash_tui.store.shapes import line_reader

# Planning the statement for plain lines takes as long as reading this many one by one.
FEW_LINES = 200


@dataclass(slots=True)
class TrainRows:
    """What the rules of a resume look at, column by column: a step is None where a row is no train row of rank 0."""

    lines: Sequence[int] = ()
    steps: Sequence[int | None] = ()
    epochs: Sequence[float | None] = ()

    def __iter__(self) -> Iterator[tuple[int, int, float | None]]:
        """Line, step and epoch of those that have a step."""
        for line, step, epoch in zip(self.lines, self.steps, self.epochs, strict=True):
            if step is not None:
                yield line, step, epoch

    def sorted(self) -> "TrainRows":
        """In the order of their lines, which DuckDB mostly keeps."""
        if all(map(operator.lt, self.lines, self.lines[1:])):
            return self
        return TrainRows(*zip(*sorted(zip(self.lines, self.steps, self.epochs, strict=True)), strict=True))

    def merged(self, rows: list[tuple[int, int, float | None]]) -> "TrainRows":
        """These and `rows`, in the order of their lines."""
        found = sorted([*self, *rows], key=lambda row: row[0])
        return TrainRows(*zip(*found, strict=True)) if found else TrainRows()


class StartRow(NamedTuple):
    """A `start` event."""

    line_no: int
    time: float | None
    resumed_from_step: int | None
    total_steps: int | None


@dataclass(slots=True)
class SliceRows:
    """What a slice held. `keys` are those that had a value, columns by their own names."""

    num_rows: int = 0
    num_without_step: int = 0
    train: TrainRows = field(default_factory=TrainRows)
    starts: list[StartRow] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    rejects: list[RejectedLine] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)


class RowWriter:
    """Writes the rows of one generation of a run's log, all as of one attempt. `shape` says how its lines are read."""

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        names: Names,
        run_id: str,
        generation: int,
        attempt: int,
        shape: str = "jsonl",
    ) -> None:
        self._db = db
        self._is_plain = shape == "jsonl"
        self._read_line = line_reader(shape)
        self._names = names
        self._where = {"run": run_id, "generation": generation}
        self._attempt = attempt

    def write(self, part: Slice, seen: set[str]) -> SliceRows:
        """`seen`: the keys that the run has logged before."""
        found = SliceRows()
        if part.is_too_long:
            text = part.data.decode(errors="replace")
            reason = f"longer than {MAX_LINE_BYTES >> 20} MiB"
            found.rejects.append(RejectedLine(part.line_no, part.byte_offset, reason, text))
        elif left := self._write_plain(part, seen, found):
            self._write_exact(part, left, found)
        self._write_rejects(found.rejects)
        return found

    def _write_plain(self, part: Slice, seen: set[str], found: SliceRows) -> Sequence[int]:
        """Take the plain lines; the numbers of the others."""
        lines = range(part.line_no, part.line_no + part.num_lines)
        if part.num_lines < FEW_LINES or not self._is_plain:
            return lines
        statement = plain_statement(self._names, keys_in(part) | seen, seen)
        values = {
            **self._where,
            **statement.params,
            "attempt": self._attempt,
            "line_no": part.line_no,
            "num_lines": part.num_lines,
            "text": part.text(),
        }
        [row] = self._db.execute(statement.sql, values).fetchall()
        answer = PlainAnswer(*row)
        found.num_rows = answer.num_rows
        found.keys.update(column for column, given in zip(statement.unseen, answer.given, strict=True) if given)
        found.keys.update(key for keys in answer.unknown_keys or () for key in keys)
        steps = answer.steps or []
        found.num_without_step = answer.num_train - len(steps) + steps.count(None)
        found.train = TrainRows(answer.lines or [], steps, answer.epochs or []).sorted()
        if answer.num_rows == part.num_lines:
            return ()
        return sorted(set(lines).difference(found.train.lines))

    def _write_exact(self, part: Slice, left: Sequence[int], found: SliceRows) -> None:
        lines = part.raw_lines()
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=part.byte_offset))
        rows: list[str] = []
        columns: set[str] = set()
        train: list[tuple[int, int, float | None]] = []
        for line_no in left:
            at = line_no - part.line_no
            parsed = self._read_line(lines[at])
            if parsed.reason is None:
                found.warnings.extend((line_no, note) for note in parsed.notes)
            else:
                text = lines[at][: 4 * KEPT_CHARS].decode(errors="replace")[:KEPT_CHARS]
                found.rejects.append(RejectedLine(line_no, offsets[at], parsed.reason, text))
            for record in parsed.objects:
                cells, notes = row_of(self._names, record)
                found.warnings.extend((line_no, note) for note in notes)
                self._note(found, line_no, cells, train)
                columns.update(cells)
                rows.append(as_json({**cells, "line_no": line_no}))
        if rows:
            found.train = found.train.merged(train)
            self._insert(rows, columns)

    def _note(
        self, found: SliceRows, line_no: int, cells: dict[str, Any], train: list[tuple[int, int, float | None]]
    ) -> None:
        extra = cells.get("extra", {})
        found.num_rows += 1
        found.keys.update(key for key in cells if key not in ("extra", "event"))
        found.keys.update(key for key, value in extra.items() if value is not None)
        step = cells.get("step")
        if cells["event"] == "start":
            config = extra.get("config")
            total = (config if isinstance(config, dict) else {}).get("total_steps", extra.get("total_steps"))
            resumed = cells.get("resumed_from_step")
            found.starts.append(StartRow(line_no, cells.get("time"), _count(resumed), _count(total)))
        elif cells["event"] == "train" and not cells.get("rank"):
            if step is None:
                found.num_without_step += 1
            else:
                train.append((line_no, step, cells.get("epoch")))

    def _insert(self, rows: list[str], columns: set[str]) -> None:
        kinds = {name: kind for name, kind in self._names.kinds.items() if name in columns}
        kinds |= {"line_no": "BIGINT", "extra": "JSON"}
        spec = ", ".join(f'"{name}":"{kind}"' for name, kind in kinds.items())
        targets = ", ".join(f'"{name}"' for name in kinds)
        self._db.execute(
            f"insert into records (run, generation, attempt, {targets}) select $run, $generation, $attempt, row.*"  # noqa: S608
            " from (select unnest($rows) as text) as cut, lateral (select json_transform(text, $spec) as row)",
            {**self._where, "attempt": self._attempt, "rows": rows, "spec": f"{{{spec}}}"},
        )

    def _write_rejects(self, rejects: list[RejectedLine]) -> None:
        if not rejects:
            return
        self._db.execute(
            "insert into rejects (run, generation, line_no, byte_offset, reason, line) select $run, $generation,"
            " unnest($line_no), unnest($byte_offset), unnest($reason), unnest($line)",
            {
                **self._where,
                "line_no": [line.line_no for line in rejects],
                "byte_offset": [line.byte_offset for line in rejects],
                "reason": [line.reason for line in rejects],
                "line": [line.text for line in rejects],
            },
        )


def _count(value: Any) -> int | None:
    """A number of steps from a start event, whatever it was written as; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return int(value)

"""Slices of logs -> staged rows, rejects and notes. Says what it saw; knows no cursor and no transaction.

Lines of a plain form go to DuckDB as they are; every other line is read by itself, exactly, and its rows follow as
JSON of our own among the texts.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, NamedTuple

from dflash_tui.store import staging
from dflash_tui.store.base import RejectedLine
from dflash_tui.store.engine import duckdb
from dflash_tui.store.exact import as_json, cell_of, row_of
from dflash_tui.store.forms import Form, Forms
from dflash_tui.store.keys import Names
from dflash_tui.store.lines import KEPT_CHARS, MAX_LINE_BYTES, Parsed, Slice, parse
from dflash_tui.store.logged import Logged
from dflash_tui.store.shapes import LineReader
from dflash_tui.store.staging import Pieces, SourceCount, Staged

# Lines that turn out odd are read one by one when there are no more of them than this; more are halved first.
FEW_LINES = 256


class SourceSlice(NamedTuple):
    """A slice of a log, under the number that its caller gave to the file, and how its lines are read."""

    source: int
    part: Slice
    read_line: LineReader = parse


class _Line(NamedTuple):
    line_no: int
    byte_offset: int
    data: bytes


class StartRow(NamedTuple):
    """A `start` event of rank 0."""

    line_no: int
    time: float | None
    resumed_from_step: int | None
    total_steps: int | None


@dataclass(slots=True)
class SliceRows:
    """What lines of one source came to, its rows aside: those are in a staging table, counted in `staged`."""

    staged: SourceCount | None = None
    starts: list[StartRow] = field(default_factory=list)
    rejects: list[RejectedLine] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)


class Batch(NamedTuple):
    """Some lines, read: the staging table of their rows (None when there are none), what they say by source, and the
    byte and the line where each source goes on behind them."""

    staged: Staged | None
    sources: dict[int, SliceRows]
    ends: dict[int, tuple[int, int]]
    num_lines: int
    num_bytes: int


class RowReader:
    """Reads slices into staging tables. Safe from several threads, each with a cursor of its own."""

    def __init__(self, names: Names, logged: Logged, folder: Path) -> None:
        self._names = names
        self._folder = folder
        self._kinds = logged.kinds
        self._forms = Forms(names)

    def read(self, db: duckdb.DuckDBPyConnection, slices: list[SourceSlice]) -> Iterator[Batch]:
        """These slices in order, in one batch unless something among them is odd."""
        yield from self._read(db, slices, is_exact=False)

    def _read(self, db: duckdb.DuckDBPyConnection, slices: list[SourceSlice], *, is_exact: bool) -> Iterator[Batch]:
        pieces = Pieces()
        found: dict[int, SliceRows] = {}
        for one in slices:
            rows = found.setdefault(one.source, SliceRows())
            if one.part.is_too_long:
                text = one.part.data.decode(errors="replace")
                reason = f"longer than {MAX_LINE_BYTES >> 20} MiB"
                rows.rejects.append(RejectedLine(one.part.line_no, one.part.byte_offset, reason, text))
            else:
                self._sort(one, pieces, rows, is_exact=is_exact)
        num_lines = sum(one.part.num_lines for one in slices)
        num_bytes = sum(len(one.part.data) for one in slices)
        ends = {one.source: (one.part.end_offset, one.part.line_no + one.part.num_lines) for one in slices}
        if not pieces.texts:
            yield Batch(None, found, ends, num_lines, num_bytes)
        elif done := staging.stage(db, self._folder, self._kinds, pieces, self._is_unknown):
            staged, counts = done
            for source, counted in counts.items():
                found[source].staged = counted
            yield Batch(staged, found, ends, num_lines, num_bytes)
        elif is_exact:
            raise AssertionError("rows of our own were not read as they were written")
        elif num_lines <= FEW_LINES:
            yield from self._read(db, slices, is_exact=True)
        else:
            for half in _halves(slices):
                yield from self._read(db, half, is_exact=False)

    def _is_unknown(self, key: str) -> bool:
        return self._names.column(key) is None and self._names.is_plain(key)

    def _sort(self, one: SourceSlice, pieces: Pieces, rows: SliceRows, *, is_exact: bool) -> None:
        """Put the lines of a slice among the pieces, as they are or read."""
        part = one.part
        if one.read_line is not parse or is_exact:
            forms: Counter[Form] | list[Form | None] = [None] * part.num_lines
        else:
            forms = self._forms.of(part.data, part.num_lines)
        if isinstance(forms, Counter):
            _add_plain(pieces, one.source, part.line_no, part.data, forms)
            return
        lines = part.raw_lines()
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=part.byte_offset))
        at = 0
        for (is_plain, _), group in groupby(forms, key=lambda form: (form is not None, form and form.event)):
            alike = list(group)
            here = lines[at : at + len(alike)]
            if is_plain:
                met = Counter(form for form in alike if form)
                _add_plain(pieces, one.source, part.line_no + at, b"\n".join(here), met)
            else:
                for i, line in enumerate(here, at):
                    self._add_read(pieces, one, _Line(part.line_no + i, offsets[i], line), rows)
            at += len(alike)

    def _add_read(self, pieces: Pieces, one: SourceSlice, line: "_Line", rows: SliceRows) -> None:
        line_no = line.line_no
        try:
            parsed = one.read_line(line.data)
            found = [row_of(self._names, record) for record in parsed.objects]
        except (ArithmeticError, RecursionError, ValueError) as e:
            # Whatever a line holds, it stops no other one.
            parsed, found = Parsed([], f"cannot be read: {e}"), []
        if parsed.reason is not None:
            text = line.data[: 4 * KEPT_CHARS].decode(errors="replace")[:KEPT_CHARS]
            rows.rejects.append(RejectedLine(line_no, line.byte_offset, parsed.reason, text))
        else:
            rows.warnings.extend((line_no, note) for note in parsed.notes)
        for cells, notes in found:
            rows.warnings.extend((line_no, note) for note in notes)
            if cells["event"] == "start" and not cells.get("rank"):
                rows.starts.append(_start(line_no, cells))
            text = as_json({f"={key}": value for key, value in cells.items()})
            pieces.add(one.source, line_no, 1, text.encode(), None, is_raw=False)
            pieces.columns.update(cells)
            pieces.cells.update(key for key in cells if key != "extra")
            pieces.cells["extra"] += len(cells.get("extra", ()))


def _add_plain(pieces: Pieces, source: int, line_no: int, data: bytes, met: Counter[Form]) -> None:
    """Lines of these forms, which differ in what they hold, not in what kind of row they are."""
    event = next(iter(met)).event
    pieces.add(source, line_no, met.total(), data, event, is_raw=True)
    for form, num_lines in met.items():
        pieces.keys.update(form.columns)
        pieces.nulls.update(form.nulls)
        pieces.has_unknown |= form.num_unknown > 0
        for _, column in form.columns:
            pieces.cells[column] += num_lines
        pieces.cells["extra"] += num_lines * form.num_unknown


def _halves(slices: list[SourceSlice]) -> list[list[SourceSlice]]:
    if len(slices) > 1:
        return [slices[: len(slices) // 2], slices[len(slices) // 2 :]]
    [one] = slices
    return [[one._replace(part=part)] for part in one.part.halves()]


def _start(line_no: int, cells: dict[str, Any]) -> StartRow:
    extra = cells.get("extra", {})
    config = extra.get("config")
    total = (config if isinstance(config, dict) else {}).get("total_steps", extra.get("total_steps"))
    return StartRow(line_no, cells.get("time"), _whole(cells.get("resumed_from_step")), _whole(total))


def _whole(value: Any) -> int | None:
    """A number of steps from a start event, whatever it was written as; None for what is none."""
    number = cell_of("DOUBLE", value)
    return int(number) if isinstance(number, float) and abs(number) < 2**53 else None

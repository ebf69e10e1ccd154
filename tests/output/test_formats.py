"""Whatever a cell holds, each format keeps it: another reader finds it the same, and a table stays a table."""

import csv
import io
import json
import math
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.output.csv import csv_pieces, shown_csv_pieces
from dflash_tui.output.formats import Pieces
from dflash_tui.output.json import json_pieces, jsonl_pieces, unique
from dflash_tui.output.markdown import markdown_pieces
from dflash_tui.output.table import fitted_table, table_pieces
from dflash_tui.output.values import blob, word

ODD = "\",\r\n\t |\\`*<&~[]'\x00\x1b\x7f\u202eé😀NUL"
TEXT = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), max_size=12)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "HUGEINT": st.integers(-(2**127), 2**127 - 1),
    "DOUBLE": st.floats(),
    "VARCHAR": TEXT,
    "BOOLEAN": st.booleans(),
    "BLOB": st.binary(max_size=8),
    "DOUBLE[]": st.lists(st.none() | st.floats(), max_size=3),
    "STRUCT(a VARCHAR)": st.fixed_dictionaries({"a": st.none() | TEXT}),
}


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[str], list[str], list[list[tuple[Any, ...]]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    names = [draw(TEXT) for _ in kinds]
    row = st.tuples(*(st.none() | KINDS[kind] for kind in kinds))
    return names, kinds, draw(st.lists(st.lists(row, min_size=1, max_size=3), max_size=3))


def said(pieces: Pieces, answer: tuple[list[str], list[str], list[list[tuple[Any, ...]]]]) -> str:
    return "".join(pieces(answer[0], answer[1], iter(answer[2])))


def strict(value: Any) -> Any:
    """A cell as a strict JSON reader finds it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else word(value)
    if isinstance(value, bytes):
        return blob(value)
    if isinstance(value, list):
        return [strict(item) for item in value]
    return value


def refuse(token: str) -> None:
    raise AssertionError(f"{token} is not strict JSON")


@given(answers())
def test_json_reads_back_as_it_was(answer: tuple[list[str], list[str], list[list[tuple[Any, ...]]]]) -> None:
    names, _, batches = answer
    rows = [dict(zip(unique(names), map(strict, row), strict=True)) for batch in batches for row in batch]
    text = said(json_pieces, answer)
    assert json.loads(text, parse_constant=refuse) == rows
    lines = said(jsonl_pieces, answer)
    assert [json.loads(line, parse_constant=refuse) for line in lines.split("\n")[:-1]] == rows
    assert all(c == "\n" or " " <= c <= "~" for c in text + lines)


@given(answers())
def test_csv_reads_back_as_it_was(answer: tuple[list[str], list[str], list[list[tuple[Any, ...]]]]) -> None:
    names, kinds, batches = answer
    text = said(csv_pieces, answer)
    header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == names
    rows = [row for batch in batches for row in batch]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for shown, kind, cell in zip(line or [""], kinds, row, strict=True):
            if cell is None or kind == "VARCHAR":
                assert shown == (cell or "")
            elif kind.endswith("INT"):
                assert int(shown) == cell
            elif kind == "DOUBLE":
                assert float(shown) == cell or (math.isnan(cell) and shown == "NaN")
            elif kind == "BOOLEAN":
                assert shown == str(cell).lower()
            elif kind == "BLOB":
                assert shown == blob(cell)
            else:
                assert json.loads(shown, parse_constant=refuse) == strict(cell)


@given(TEXT | st.none(), st.integers())
def test_csv_tells_null_from_nothing(cell: str | None, number: int) -> None:
    line = "".join(csv_pieces(["a", "b"], ["VARCHAR", "BIGINT"], [[(cell, number)]])).partition("\n")[2]
    assert line.startswith(",") == (cell is None)
    assert line.startswith('"",') == (cell == "")


@given(answers())
def test_a_table_has_a_line_a_row_and_nothing_that_a_terminal_obeys(
    answer: tuple[list[str], list[str], list[list[tuple[Any, ...]]]],
) -> None:
    names, _, batches = answer
    num = sum(map(len, batches))
    told: list[str] = []
    for text in (
        said(table_pieces, answer),
        said(markdown_pieces, answer),
        said(fitted_table(40, told.append), answer),
    ):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", text)
    assert said(table_pieces, answer).count("\n") == num + 1
    lines = said(markdown_pieces, answer).splitlines()
    assert len(lines) == num + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == len(names) + 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said(shown_csv_pieces, answer))


@given(st.lists(st.sampled_from(["a", "a_1", "a_2", "b", ""])))
def test_keys_differ_and_the_first_of_a_name_keeps_it(names: list[str]) -> None:
    found = unique(names)
    assert len(set(found)) == len(names)
    for name in set(names):
        assert found[names.index(name)] == name


def test_a_wide_table_keeps_numbers_whole_and_says_what_it_left_out() -> None:
    told: list[str] = []
    columns = [f"column_{n}" for n in range(9)]
    row = tuple(10**n + 0.25 if n % 2 else "text" * n for n in range(9))
    kinds = ["DOUBLE" if n % 2 else "VARCHAR" for n in range(9)]
    text = "".join(fitted_table(60, told.append)(columns, kinds, [[row]]))
    assert max(map(len, text.splitlines())) <= 60
    shown = text.splitlines()[1]
    assert "10.25" in shown and "1000.25" in shown and "…" in shown
    assert told == ["showing 7 of 9 columns; name those you want, or --format csv has them all"]


def test_a_cell_wider_than_the_first_rows_pushes_its_line_and_loses_nothing() -> None:
    rows = [[("a", 1)] * 1000, [("b" * 50, 2)]]
    lines = "".join(table_pieces(["x", "n"], ["VARCHAR", "BIGINT"], rows)).splitlines()
    assert lines[1] == "a  1" and lines[-1] == "b" * 50 + "  2"

"""Lines cut out of growing files, and one line read exactly."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.store import lines
from dflash_tui.store.lines import parse, slices


@given(data=st.binary(max_size=400).map(lambda raw: raw.replace(b"\r", b"\n")), cuts=st.lists(st.integers(0, 400)))
def test_lines_are_the_same_however_a_file_grows(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int]
) -> None:
    file = tmp_path_factory.mktemp("cut") / "log"
    offset, line_no, found = 0, 1, []
    for end in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        file.write_bytes(data[:end])
        for part in slices(file, offset, line_no):
            assert (part.byte_offset, part.line_no) == (offset, line_no)
            found += part.raw_lines()
            offset, line_no = part.end_offset, part.line_no + part.num_lines
            assert len(part.raw_lines()) == part.num_lines
    assert found == data.split(b"\n")[:-1]
    assert offset == data.rfind(b"\n") + 1


@given(
    parts=st.lists(st.binary(max_size=20).filter(lambda raw: b"\n" not in raw), min_size=1, max_size=40),
    num_bytes=st.integers(1, 200),
    num_lines=st.integers(1, 8),
)
def test_a_slice_holds_so_many_bytes_and_lines_at_most(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], num_bytes: int, num_lines: int
) -> None:
    file = tmp_path_factory.mktemp("sliced") / "log"
    file.write_bytes(b"".join(part + b"\n" for part in parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SLICE_BYTES", num_bytes)
        patch.setattr(lines, "SLICE_LINES", num_lines)
        found = list(slices(file, 0, 1))
    assert [line for part in found for line in part.raw_lines()] == parts
    assert all(len(part.raw_lines()) == part.num_lines <= num_lines for part in found)
    assert all(len(part.data) <= max(num_bytes, 21) or part.num_lines == 1 for part in found)
    assert found[-1].end_offset == file.stat().st_size


def test_halves_are_all_of_a_slice(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\n\nfour and more\n")
    [whole] = slices(tmp_path / "log", 0, 1)
    first, second = whole.halves()
    assert first.raw_lines() + second.raw_lines() == whole.raw_lines()
    assert (first.end_offset, second.end_offset) == (second.byte_offset, whole.end_offset)
    assert (second.line_no, second.num_lines) == (1 + first.num_lines, 4 - first.num_lines)


def test_a_closed_file_gives_its_unfinished_line_too(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a\nhalf")
    assert [part.data for part in slices(tmp_path / "log", 0, 1)] == [b"a"]
    assert [part.data for part in slices(tmp_path / "log", 0, 1, is_closed=True)] == [b"a", b"half"]


def test_a_slice_is_many_lines_but_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SLICE_BYTES", 64)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 200)
    long = b"x" * 150 + b"\n"
    too_long = b"y" * 1000 + b"\n"
    (tmp_path / "log").write_bytes(b"a\n" + long + too_long + b"b\n" * 50)
    found = list(slices(tmp_path / "log", 0, 1))
    assert [part.is_too_long for part in found].count(True) == 1
    refused = next(part for part in found if part.is_too_long)
    assert (refused.line_no, refused.byte_offset, refused.end_offset) == (3, 153, 1154)
    assert len(refused.data) <= lines.KEPT_CHARS
    assert sum(part.num_lines for part in found) == 53
    assert b"".join(part.data + b"\n" for part in found if not part.is_too_long) == b"a\n" + long + b"b\n" * 50


def test_a_too_long_line_without_an_end_is_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SLICE_BYTES", 64)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 200)
    (tmp_path / "log").write_bytes(b"a\n" + b"y" * 1000)
    assert [part.data for part in slices(tmp_path / "log", 0, 1)] == [b"a"]
    closed = list(slices(tmp_path / "log", 0, 1, is_closed=True))
    assert [part.is_too_long for part in closed] == [False, True]
    assert closed[-1].end_offset == 1002


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    )
)
def test_what_python_writes_is_read_back(record: dict[str, object]) -> None:
    parsed = parse(json.dumps(record).encode())
    assert (parsed.objects, parsed.reason, parsed.notes) == ([record], None, ())


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"step": 1,}', "not JSON"),
        (b'{"step": 1} and more', "text after the record"),
        (b"[1, 2]", "no JSON object"),
        (b"42", "no JSON object"),
        (b"Traceback (most recent call last):", "no JSON object"),
        (b'{"step": 12, "loss": 0.9', "not JSON"),
        (b'{"step": 4, "lo{"step": 5, "loss": 1.ss": 1.7}6}', "not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested more than 64 levels deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
        (b"\x00\x01\x02garbage\xff", "no JSON object"),
    ],
)
def test_a_bad_line_says_why(raw: bytes, reason: str) -> None:
    parsed = parse(raw)
    assert parsed.objects == []
    assert parsed.reason is not None
    assert reason in parsed.reason


def test_brackets_in_text_are_not_depth() -> None:
    record = {"note": "[" * 500, "path": '\\"' + "{" * 500}
    assert parse(json.dumps(record).encode()).objects == [record]


def test_two_objects_on_a_line_are_two_records() -> None:
    assert parse(b'{"step": 2}{"step": 3} {"step": 4}\r').objects == [{"step": 2}, {"step": 3}, {"step": 4}]


def test_the_last_of_doubled_keys_counts_and_is_told() -> None:
    parsed = parse(b'{"loss": 9.0, "a": {"x": 1, "x": 2}, "loss": 2.0}')
    assert parsed.objects == [{"loss": 2.0, "a": {"x": 2}}]
    assert [note.split(" stands")[0] for note in parsed.notes] == ["key 'x'", "key 'loss'"]


@pytest.mark.parametrize("words", [("NaN", "-Infinity", "Infinity"), ("nan", "-inf", "+inf"), ("-nan", "-INF", "inf")])
def test_words_for_what_is_not_finite(words: tuple[str, str, str]) -> None:
    text = f'{{"a": {words[0]}, "b": {words[1]}, "c":{words[2]}, "d": "nan inf \\" nan"}}'
    [record] = parse(text.encode()).objects
    assert math.isnan(record["a"])
    assert (record["b"], record["c"], record["d"]) == (-math.inf, math.inf, 'nan inf " nan')
    assert parse(b'{"a": nan, "b": nano}').reason == "not JSON: Expecting value at character 7"


def test_odd_bytes_are_kept_as_far_as_they_can_be() -> None:
    parsed = parse(b'{"step": 3, "note": "\xff bad"}')
    assert parsed.objects == [{"step": 3, "note": "\ufffd bad"}]
    assert parsed.notes == ("byte 0xff is not UTF-8 and was replaced",)
    assert parse(b'\x00\x00{"step": 3}').objects == [{"step": 3}]
    assert parse(b'\xef\xbb\xbf{"step": 3}\r').objects == [{"step": 3}]
    assert parse(b" \t\r").objects == []

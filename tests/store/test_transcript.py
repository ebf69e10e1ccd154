"""A run's words as rows: the same lines that the file has, however long, however it grew; found, filtered, noted."""

from array import array
from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.store import log_file
from dflash_tui.store.log_file import LogFile
from dflash_tui.store.log_notes import LogNotes
from dflash_tui.store.log_words import Words, typed
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.transcript import Layout, Transcript, View
from dflash_tui.text import visible

BAR = "\r 10%|#  | loss\r   \r 90%|## | é"
LINES = st.lists(
    st.sampled_from(["", "a", "loss", "LOSS=1", "é NaN\x1b[31m", "x" * 300, "ab" * 40, "\r", BAR, BAR * 60]),
    max_size=60,
)
WORDS = st.sampled_from(["loss", "LOSS", "a", "nan", "é", "10%", "90%"])


def always() -> bool:
    return True


@pytest.fixture(scope="module", autouse=True)
def short_blocks() -> "object":
    """So short that a log of a few lines has many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "_STRIDE", 64)
        patch.setattr(log_file, "_BLOCK", 256)
        patch.setattr(log_file, "MAX_LINE_BYTES", 100)
        yield


def last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state.strip()]
    return (states[-1] if states else "") if "\r" in line else line


def head(line: bytes) -> bytes:
    return last_state(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")[:100]


def shown(lines: list[str]) -> list[str]:
    return [visible(head(line.encode()).decode("utf-8", "replace")) for line in lines]


def log(run_id: str, text: str, generation: int | None = None) -> Path:
    file = Mirror(run_id).folder / ("train_log.jsonl" if generation is None else f"train_log.{generation}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, newline="")
    return file


def transcript(text: str, view: View = "metrics") -> tuple[Transcript, Layout]:
    log("r", text)
    made = Transcript("r", view)
    return made, made.look(always)


@settings(max_examples=40)
@given(LINES, st.booleans(), st.lists(st.integers(1, 400), max_size=4), st.integers(0, 60), st.integers(1, 60))
def test_a_file_has_its_lines_however_it_grew(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: bool, pieces: list[int], first: int, count: int
) -> None:
    data = "\n".join([*lines, *([""] if ends and lines else [])]).encode()
    path = tmp_path_factory.getbasetemp() / "grown"
    path.write_bytes(b"")
    file = LogFile(path)
    for size in [*sorted(pieces), len(data)]:
        path.write_bytes(data[:size])
        file.grow()
    whole = data.split(b"\n")
    whole = whole[:-1] if whole[-1] == b"" else whole
    assert (file.num_lines, file.size) == (len(whole), len(data))
    assert [(line.head, line.size) for line in file.lines(first, count)] == [
        (head(line), len(line)) for line in whole[first : first + count]
    ]


@settings(max_examples=40)
@given(LINES, st.integers(-1, 61), st.sampled_from([1, -1]), WORDS)
def test_a_search_finds_the_nearest_line(lines: list[str], row: int, by: int, words: str) -> None:
    _, layout = transcript("\n".join([*lines, "end"]))
    has = [
        at
        for at, line in enumerate([*map(last_state, lines), "end"])
        if words in (line.lower() if words == words.lower() and words.isascii() else line)
    ]
    right = next((at for at in (has if by > 0 else reversed(has)) if (at > row if by > 0 else at < row)), None)
    assert layout.search(row, typed(words), by, always) == right


@settings(max_examples=40)
@given(LINES, st.integers(0, 60), st.sampled_from(["loss", "a", "x", "10%", "90%"]))
def test_a_filter_keeps_the_lines_with_its_words_as_the_log_grows(lines: list[str], at: int, words: str) -> None:
    made, _ = transcript("\n".join(lines[:at]))
    made.filter(typed(words))
    made.look(always)
    log("r", "\n".join(lines))
    layout = made.look(always)
    kept = [(at, line) for at, line in enumerate(lines, 1) if words in last_state(line).lower()]
    assert [row.line_no for row in layout.rows(0, 100)] == [line_no for line_no, _ in kept]
    assert [row.text for row in layout.rows(0, 100)] == shown([line for _, line in kept])
    for place, (line_no, _) in enumerate(kept):
        assert layout.row_of(1, line_no) == place
        assert layout.search(place - 1, typed(words), 1, always) == place
    made.filter(None)
    assert made.look(always).num_rows == layout.num_lines


def test_a_filter_that_takes_long_goes_on_with_the_next_look() -> None:
    made, _ = transcript("loss\n" * 500)
    made.filter(typed("loss"))
    turns = iter([True, True, False])
    assert not made.look(lambda: next(turns, False)).is_whole
    assert 0 < made.look(lambda: False).num_rows < 500
    assert made.look(always).num_rows == 500


def test_notes_stand_above_their_lines_and_lines_say_what_they_are() -> None:
    log("r", "old\n", generation=1)
    log("r", "one\ntwo\nthree\nfour\n")
    made = Transcript("r", "metrics")
    made.notes = LogNotes({2: [(3, "attempt 2"), (3, "gap"), (9, "later")]}, {2: [range(1, 3)]}, {2: {4: "no JSON"}}, 1)
    layout = made.look(always)
    assert [(row.kind, row.line_no, row.text) for row in layout.rows(0, 20)] == [
        ("line", 1, "old"),
        ("note", 1, "the log begins anew: generation 2"),
        ("void", 1, "one"),
        ("void", 2, "two"),
        ("note", 3, "attempt 2"),
        ("note", 3, "gap"),
        ("line", 3, "three"),
        ("reject", 4, "four"),
    ]
    assert layout.rows(5, 2) == layout.rows(0, 20)[5:7]
    assert [layout.row_of(2, line_no) for line_no in (1, 2, 3, 4)] == [2, 3, 6, 7]
    assert layout.search(4, typed("three"), 1, always) == 6 and layout.search(7, typed("o"), -1, always) == 3
    rejects = Transcript("r", "rejects")
    rejects.notes = made.notes
    assert [(row.line_no, row.reason) for row in rejects.look(always).rows(0, 5)] == [(4, "no JSON")]


def test_output_of_every_attempt_and_a_log_that_was_begun_anew() -> None:
    for attempt in (1, 2):
        file = Mirror("r").folder / f"attempts/{attempt}/output.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"words of {attempt}\n")
    made = Transcript("r", "output")
    assert [row.text for row in made.look(always).rows(0, 9)] == ["attempt 1", "words of 1", "attempt 2", "words of 2"]
    file.write_text("anew\n")
    assert [row.text for row in made.look(always).rows(2, 2)] == ["attempt 2", "anew"]
    file.unlink()
    assert made.look(always).num_rows == 2


def test_several_words_at_once() -> None:
    words = Words((b"Error", b"NaN"))
    block = b"a\nNaN Error\nError\n\nx NaN"
    assert list(words.lines(block)) == [1, 2, 4]
    assert [text[place.start : place.stop] for text in ["NaN or Error"] for place in words.places(text)] == [
        "NaN",
        "Error",
    ]


def test_a_file_that_begins_anew_while_it_is_read_is_read_as_far_as_it_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log("r", "line\n" * 100)
    one = LogFile(file)
    one.grow()

    def found(numbers: "array[int]", line: int) -> int:
        place = bisect_right(numbers, line)
        file.write_text("anew\n")
        one.grow()
        return place

    monkeypatch.setattr(log_file, "bisect_right", found)
    assert one.lines(90, 3) == []

"""A run's own words, read from its mirror once or as they come."""

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.runs import Cursor
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, anchor
from dflash_tui.store.tail import Tail, last_words


def append(stream: str, data: bytes) -> None:
    mirror = Mirror("r")
    before = mirror.cursor(stream)
    mirror.append(stream, data, Cursor(before.offset + len(data), 1, anchor(data)))


def test_output_comes_in_whole_lines_attempt_by_attempt() -> None:
    tail = Tail("r")
    assert tail.read() == []
    append("attempts/1/output.log", b"one\ntw")
    assert tail.read() == ["one"]
    append("attempts/1/output.log", b"o\r\n")
    append("attempts/2/output.log", b"caf\xc3\xa9 \xff\nlast")
    assert tail.read() == ["two", "café \ufffd"]
    assert tail.rest() == ["last"]


def test_the_last_words_are_those_of_the_newest_attempt() -> None:
    assert last_words("r") is None
    append("attempts/9/output.log", b"old\n")
    append("attempts/10/output.log", b"x" * 9000 + b"\nbar: 1%\rbar: 99%\r\n \n")
    assert last_words("r") == "bar: 99%"


def test_a_stray_folder_among_the_attempts_is_passed_over() -> None:
    append("attempts/2/output.log", b"two\n")
    for name in ("1.bak", "old", "\u00b2", "-1"):
        stray = Mirror("r").folder / "attempts" / name / "output.log"
        stray.parent.mkdir()
        stray.write_bytes(b"stray\n")
    assert Tail("r").read() == ["two"]
    assert last_words("r") == "two"


def test_metrics_from_a_step_on_over_generations() -> None:
    tail = Tail("r", metrics=True, since_step=2)
    append(TRAIN_LOG, b'{"step": 1}\n{"step": 2}\nno json\n{"event": "eval"}\n')
    assert tail.read() == ['{"step": 2}']
    Mirror("r").start_generation(TRAIN_LOG, "truncated")
    append(TRAIN_LOG, b'{"step": 3.0}\n')
    assert tail.read() == ['{"step": 3.0}']
    assert tail.read() == []


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_no_cut_loses_or_doubles_a_line(pieces: list[bytes]) -> None:
    import shutil

    shutil.rmtree(Mirror("r").folder, ignore_errors=True)
    tail, got = Tail("r"), []
    for piece in pieces:
        if piece:
            append("attempts/1/output.log", piece)
        got += tail.read()
    got += tail.rest()
    whole = b"".join(pieces).decode("utf-8", "replace").split("\n")
    assert got == [line.rstrip("\r") for line in (whole if whole[-1] else whole[:-1])]

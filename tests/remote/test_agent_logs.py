"""Reading files that grow, are cut, renamed and rewritten: nothing lost, nothing twice, every new beginning named."""

import hashlib
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.remote.agent import logs
from dflash_tui.remote.client import AgentClient
from dflash_tui.runs import Cursor


class Reader:
    """What the mirror does: keeps a cursor and the bytes of each generation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cursor = Cursor()
        self.generations = [b""]
        self.resets: list[str] = []

    def read(self, max_bytes: int = 1 << 18, is_final: bool = False) -> bytes:
        meta, data = logs.read({"path": str(self.path), "final": is_final, **asdict(self.cursor)}, max_bytes)
        if "missing" in meta:
            return b""
        if meta["reset"]:
            self.resets.append(meta["reset"])
            self.generations.append(b"")
        self.generations[-1] += data
        self.cursor = Cursor(meta["offset"], meta["inode"], meta["anchor"])
        return data

    def catch_up(self, max_bytes: int = 1 << 18, is_final: bool = False) -> None:
        while True:
            before = self.cursor
            self.read(max_bytes, is_final)
            if self.cursor == before:
                return


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "log")


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as f:
        f.write(data)


def test_whole_lines_only_until_the_writer_has_ended(reader: Reader) -> None:
    append(reader.path, b"one\ntw")
    assert reader.read() == b"one\n"
    assert reader.read() == b""
    append(reader.path, b"o\nthree")
    assert reader.read() == b"two\n"
    assert reader.read(is_final=True) == b"three"
    assert reader.resets == []


def test_a_line_longer_than_an_answer_comes_in_pieces(reader: Reader) -> None:
    line = b"x" * 1000 + b"\n"
    append(reader.path, line + b"next\n")
    reader.catch_up(max_bytes=300)
    assert reader.generations == [line + b"next\n"]


def test_a_file_that_is_not_there_yet_is_no_reset(reader: Reader) -> None:
    assert reader.read() == b""
    append(reader.path, b"one\n")
    reader.read()
    reader.path.unlink()
    assert reader.read() == b""
    assert (reader.generations, reader.resets) == ([b"one\n"], [])


@pytest.mark.parametrize(
    ("change", "reset"),
    [
        (lambda path: path.write_bytes(b"n1\n"), "truncated"),
        (lambda path: path.write_bytes(b"a1\na2\na3\na4\na5\na6\n"), "rewritten"),
        (lambda path: (path.rename(f"{path}.old"), path.write_bytes(b"fresh\n")), "rotated"),
    ],
)
def test_another_file_under_the_same_name_is_recognised(reader: Reader, change, reset: str) -> None:  # type: ignore[no-untyped-def]
    append(reader.path, b"line1\nline2\n")
    reader.catch_up()
    change(reader.path)
    reader.catch_up()
    assert reader.resets == [reset]
    assert reader.generations == [b"line1\nline2\n", reader.path.read_bytes()]


def test_the_rest_of_a_rotated_file_is_read_before_the_new_one(reader: Reader) -> None:
    first = b"".join(b'{"step": %d}\n' % n for n in range(1000))
    append(reader.path, first[:5000])
    reader.read()
    append(reader.path, first[5000:] + b"torn")
    reader.path.rename(f"{reader.path}.1")
    append(reader.path, b"second\n")
    reader.catch_up(max_bytes=700)
    assert reader.generations == [first + b"torn", b"second\n"]
    assert reader.resets == ["rotated"]


def test_an_answer_without_room_skips_nothing_of_a_rotated_file(reader: Reader) -> None:
    append(reader.path, b"one\n")
    reader.read()
    append(reader.path, b"two\n")
    reader.path.rename(f"{reader.path}.1")
    append(reader.path, b"three\n")
    assert reader.read(0) == b""
    reader.catch_up()
    assert reader.generations == [b"one\ntwo\n", b"three\n"]


def unique(number: int, size: int) -> bytes:
    """Bytes that no other number gives, some without a line's end: as in a log, no stretch of 64 comes again."""
    text = b""
    while len(text) < size:
        text += hashlib.sha256(b"%d %d" % (number, len(text))).hexdigest().encode()
    return b"".join(text[i : i + 23] + b"\n" for i in range(0, size, 23)) if number % 3 else text[:size]


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 300)),
    st.tuples(st.just("append"), st.integers(1, 300)),
    st.tuples(st.just("newline"), st.just(0)),
    st.tuples(st.just("cut"), st.integers(0, 400)),
    st.tuples(st.just("rewrite"), st.integers(0, 300)),
    st.tuples(st.just("rotate"), st.integers(0, 100)),
    st.tuples(st.just("read"), st.integers(1, 200)),
    st.tuples(st.just("read"), st.integers(1, 200)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=40), st.integers(1, 200))
def test_the_copy_equals_the_file_whatever_happens_to_it(actions: list[tuple[str, int]], last_size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder, "log"))
        append(reader.path, b"")
        versions = [b""]  # What each file that has had the name held, at its longest before it was cut or replaced.
        for number, (action, size) in enumerate(actions):
            if action == "read":
                reader.read(size)
                continue
            versions[-1] = reader.path.read_bytes()
            if action == "append":
                append(reader.path, unique(number, size))
            elif action == "newline":
                append(reader.path, b"\n")
            else:
                versions.append(b"")
                if action == "cut":
                    os.truncate(reader.path, min(size, reader.path.stat().st_size))
                elif action == "rewrite":
                    reader.path.write_bytes(unique(number, size) if size else b"")
                else:
                    reader.path.rename(f"{reader.path}.1")
                    append(reader.path, unique(number, size))
        versions[-1] = reader.path.read_bytes()
        reader.catch_up(last_size)
        copy = reader.generations[-1]
        assert versions[-1].startswith(copy)
        assert b"\n" not in versions[-1][len(copy) :], "a whole line was held back"
        reader.catch_up(is_final=True)
        assert reader.generations[-1] == versions[-1]
        assert all(any(v.startswith(g) for v in versions) for g in reader.generations)


async def test_a_noisy_run_starves_nobody(agent: AgentClient, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("noisy", "quiet")]
    append(files[0], (b"x" * 99 + b"\n") * 50_000)
    append(files[1], b"quiet\n")
    (noisy, noisy_data), (_, quiet_data) = await agent.ask([{"op": "read", "path": str(file)} for file in files])
    assert len(noisy_data) == logs.FILE_BYTES // 100 * 100 < noisy["size"]
    assert quiet_data == b"quiet\n"


async def test_an_answer_stays_bounded_and_the_rest_comes_next(agent: AgentClient, tmp_path: Path) -> None:
    line = b"x" * 99 + b"\n"
    files = [tmp_path / str(n) for n in range(20)]
    for file in files:
        append(file, line * 3000)
    got = dict.fromkeys(files, b"")
    cursors = {file: Cursor() for file in files}
    while any(len(data) < 300_000 for data in got.values()):
        answers = await agent.ask([{"op": "read", "path": str(file), **asdict(cursors[file])} for file in files])
        assert 0 < sum(len(data) for _, data in answers) <= logs.ANSWER_BYTES
        for file, (meta, data) in zip(files, answers, strict=True):
            got[file] += data
            cursors[file] = Cursor(meta["offset"], meta["inode"], meta["anchor"])
    assert all(data == line * 3000 for data in got.values())

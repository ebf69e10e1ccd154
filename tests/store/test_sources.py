"""Logs on this machine: rotated, packed, renamed, grown; several who ingest one; one that somebody else collects."""

import gzip
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import Cursor, RunRecord
from dflash_tui.store import held
from dflash_tui.store.base import IngestSummary
from dflash_tui.store.database import Database
from dflash_tui.store.held import copy_log
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.store.sources import open_log, runs_of

from .conftest import grow, rows_of


def test_many_who_ingest_one_log_at_once_take_it_in_once(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    # More than one block of copying, so that one may come while another is in the middle.
    log.write_text("".join(f'{{"step": {step}, "note": "{"x" * 60_000}"}}\n' for step in range(1, 101)))
    everybody = Barrier(4)

    def ingest(_: int) -> IngestSummary:
        everybody.wait(10)
        return database.ingest("r", log)

    with ThreadPoolExecutor(4) as threads:
        summaries = list(threads.map(ingest, range(4)))
    assert Mirror("r").path(TRAIN_LOG).read_bytes() == log.read_bytes()
    assert sorted(summary.rows for summary in summaries) == [0, 0, 0, 100]
    assert rows_of(database, "select count(*), count(distinct step) from steps") == [(100, 100)]


def test_the_mirror_of_a_run_with_a_host_is_its_collectors(database: Database, tmp_path: Path) -> None:
    database.register_run(RunRecord("live-1", "live", "train", "local", "/w", "/w/log", 1.0))
    grow("live-1", b'{"step": 1}\n')
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1}\n{"step": 2}\n')
    words = "live-1 is a run of host local: its log is collected from there; choose another --run"
    with pytest.raises(UsageError, match=f"^{words}$"):
        database.ingest("live-1", log)
    assert Mirror("live-1").path(TRAIN_LOG).read_bytes() == b'{"step": 1}\n'
    assert list(Mirror("live-1").events()) == []


def log_lines(first: int, last: int) -> bytes:
    return b"".join(b'{"step": %d, "loss": %d.5}\n' % (step, step) for step in range(first, last + 1))


def steps(database: Database) -> list[int]:
    return [step for (step,) in rows_of(database, "select step from records order by generation, line_no")]


def test_the_parts_of_one_log_are_told_by_their_names(tmp_path: Path) -> None:
    parts = ["a.jsonl", "a.jsonl.1", "a.jsonl.10.gz", "a.jsonl.2.gz"]
    dated = ["b.log-20260102.gz", "b.log.2026-01-03_04-00", "b.log"]
    others = ["c-v1.2", "d.gz", "e.2026"]
    given = [tmp_path / name for name in [*parts, *dated, *others]]
    assert [file.name for file, _ in runs_of(given, "r")] == [
        *("a.jsonl.10.gz", "a.jsonl.2.gz", "a.jsonl.1", "a.jsonl"),
        *("b.log-20260102.gz", "b.log.2026-01-03_04-00", "b.log"),
        *others,
    ]
    assert {run_id for _, run_id in runs_of(given, None)} == {"a", "b", "c-v1", "d", "e"}
    assert {run_id for _, run_id in runs_of(given, "r")} == {"r"}
    with pytest.raises(
        UsageError, match=r"x/a.jsonl and y/a.jsonl would both be the run a: ingest each with its --run"
    ):
        runs_of([Path("x/a.jsonl"), Path("y/a.jsonl")], None)


def test_rotated_parts_make_one_run_and_come_once(database: Database, tmp_path: Path) -> None:
    live = tmp_path / "train.jsonl"
    (tmp_path / "train.jsonl.2.gz").write_bytes(gzip.compress(log_lines(1, 40)))
    (tmp_path / "train.jsonl.1").write_bytes(log_lines(41, 70))
    live.write_bytes(log_lines(71, 90) + b'{"step": 91, "lo')
    jobs = runs_of([live, tmp_path / "train.jsonl.1", tmp_path / "train.jsonl.2.gz"], None)
    assert [database.ingest(run_id, file).rows for file, run_id in jobs] == [40, 30, 20]
    for file in (live, tmp_path / "train.jsonl.1", tmp_path / "train.jsonl.2.gz"):
        assert database.ingest("train", file).rows == 0
    assert steps(database) == list(range(1, 91))
    # Rotated again meanwhile: every part has another name, and the live one grew before it was moved away.
    (tmp_path / "train.jsonl.1").rename(tmp_path / "train.jsonl.2")
    (tmp_path / "train.jsonl.1").write_bytes(log_lines(71, 95))
    live.write_bytes(log_lines(96, 97))
    for file, run_id in runs_of([live, tmp_path / "train.jsonl.1", tmp_path / "train.jsonl.2"], None):
        database.ingest(run_id, file)
    assert steps(database) == list(range(1, 98))
    assert len(database.detail("train").attempts) == 1
    assert rows_of(database, "select count(*) from rejects") == [(0,)]


def test_two_logs_that_both_grow_share_a_run(database: Database, tmp_path: Path) -> None:
    train, val = tmp_path / "train.jsonl", tmp_path / "val.jsonl"
    train.write_bytes(log_lines(1, 3) + b'{"step": 4, "lo')
    val.write_bytes(b'{"step": 2, "val_loss": 9.0}\n')
    assert [database.ingest("r", file).rows for file in (train, val)] == [3, 1]
    train.write_bytes(log_lines(1, 6))
    val.write_bytes(val.read_bytes() + b'{"step": 5, "val_loss": 8.0}\n')
    assert [database.ingest("r", file).rows for file in (train, val, train, val)] == [3, 1, 0, 0]
    assert rows_of(database, "select step from steps order by step") == [(step,) for step in range(1, 7)]
    assert rows_of(database, "select step, eval_loss from evals order by step") == [(2, 9.0), (5, 8.0)]
    # What the train log ended in when the other came was no whole line: it stays told.
    assert rows_of(database, "select line from rejects") == [('{"step": 4, "lo',)]


def test_messages_name_the_line_of_the_file_that_was_given(database: Database, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(log_lines(1, 5) + b"torn")
    second.write_bytes(log_lines(6, 7) + b'garbage\n{"step": 8, "loss": true}\n')
    database.ingest("r", first)
    summary = database.ingest("r", second)
    assert [(bad.line_no, bad.reason) for bad in summary.first_rejects] == [
        (6, "no JSON object (the last line of what was ingested before)"),
        (3, "no JSON object"),
    ]
    assert summary.warnings == ["line 4: loss: true is not a number; kept in extra"]
    assert rows_of(database, "select line_no from rejects order by 1") == [(6,), (9,)]


def test_a_bomb_is_refused_and_leaves_nothing(database: Database, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.jsonl.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(200):
            file.write(bytes(1 << 20))
    with pytest.raises(UsageError, match=r"bomb.jsonl.gz: unpacks to more than 250 times its size"):
        database.ingest("a", bomb)
    assert database.runs() == []
    assert [path.name for path in paths.mirrors_dir().iterdir()] == []


def test_a_packed_log_may_be_joined_cut_or_damaged(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    noise = b"".join(b'{"step": %d, "note": "%s"}\n' % (step, secrets.token_hex(999).encode()) for step in range(1, 99))
    file.write_bytes(gzip.compress(log_lines(1, 2)) + gzip.compress(log_lines(3, 4)) + bytes(512))
    assert (database.ingest("joined", file).rows, database.ingest("joined", file).warnings) == (4, [])
    whole = gzip.compress(noise)
    file.write_bytes(whole[: len(whole) // 2])
    cut = database.ingest("cut", file)
    assert 40 < cut.rows < 60
    assert "the gzip file is cut off or damaged" in cut.warnings[0]
    file.write_bytes(whole)
    assert cut.rows + database.ingest("cut", file).rows == 98
    file.write_bytes(whole[: len(whole) // 2] + b"\xff" * 99 + whole[len(whole) // 2 + 99 :])
    damaged = database.ingest("damaged", file)
    assert 40 < damaged.rows < 60
    assert "the gzip file is cut off or damaged" in damaged.warnings[0]
    file.write_bytes(b"\x1f\x8b and no more")
    with pytest.raises(UsageError, match=r"a.jsonl.gz: is a damaged gzip file: nothing of it can be read"):
        database.ingest("none", file)


@pytest.mark.parametrize("shape", ["jsonl", "text", "packed", "trainer_state"])
def test_odd_bytes_are_right_in_every_shape(database: Database, tmp_path: Path, shape: str) -> None:
    records = [
        '{"step": 1, "loss": 9.0, "loss": 2.0, "Loss": 77.0}',
        '{"step": "2", "loss": "1.5", "note": "caf\u00e9 \U0001f680"}',
        f'{{"step": 3, "loss": NaN, "memo": "{"x" * (4 << 20)}"}}',
        '{"step": 9007199254740993, "loss": 5, "flops": 12345678901234567890}',
    ]
    end = "\r\n"
    if shape == "trainer_state":
        text = '{"epoch": 1,' + end + '"log_history": [' + f",{end}  ".join(records) + "]}"
    else:
        text = end.join([*records, ""])
    data = b"\xef\xbb\xbf" + text.encode().replace("é".encode(), b"\xe9")
    file = tmp_path / "log"
    file.write_bytes(gzip.compress(data) if shape == "packed" else data)
    summary = database.ingest("a", file, shape="text" if shape == "text" else None)
    assert (summary.rows, summary.rejects) == (4, 0)
    found = rows_of(database, "select step, loss, extra->>'Loss', extra->>'flops', len(extra->>'memo') from records")
    assert [str(row) for row in sorted(found)] == [
        "(1, 2.0, '77.0', None, None)",
        "(2, 1.5, None, None, None)",
        f"(3, nan, None, None, {4 << 20})",
        "(9007199254740993, 5.0, None, '12345678901234567890', None)",
    ]
    assert rows_of(database, "select extra->>'note' from records where step = 2") == [("caf\ufffd \U0001f680",)]


@pytest.mark.parametrize(
    ("data", "asked", "words"),
    [
        (b"\x28\xb5\x2f\xfd...", None, "is packed with zstd: unpack it first"),
        ("x".encode("utf-16"), None, "is UTF-16 text: convert it first, iconv -f UTF-16 -t UTF-8"),
        (b'{"log_history": [{"step": 1}, {"st', None, "is no whole JSON document at line 1: "),
        (b'{"step": 1}\n', "trainer_state", "is no JSON document with a log_history; leave out --as"),
        (b'{"log_history": [' + b"[" * 99_999, None, "is no whole JSON document: "),
    ],
)
def test_what_cannot_be_read_is_said_and_leaves_no_run(
    database: Database, tmp_path: Path, data: bytes, asked: str | None, words: str
) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UsageError, match=f"x: {re.escape(words)}"):
        database.ingest("a", tmp_path / "x", shape=asked)
    assert database.runs() == []


def test_a_run_holds_one_shape(database: Database, tmp_path: Path) -> None:
    text, document = tmp_path / "out.log", tmp_path / "trainer_state.json"
    text.write_text("loading\n{'loss': 1.0}\n")
    document.write_text('{"log_history": [{"step": 1, "loss": 2.0}]}')
    assert database.ingest("a", text).rows == 1
    record = Mirror("a").read_record()
    assert record is not None
    assert record.shape == "text"
    with pytest.raises(
        UsageError, match="is a log of shape trainer_state, and its run holds one of text; choose another"
    ):
        database.ingest("a", document)
    with pytest.raises(
        UsageError, match="is a log of shape jsonl, and its run holds one of text; choose another --run"
    ):
        database.ingest("a", text, shape="jsonl")
    # JSON lines among an output are read as what they are.
    (tmp_path / "more.jsonl").write_text('{"step": 5, "loss": 2.0}\n')
    assert database.ingest("a", tmp_path / "more.jsonl").rows == 1
    assert database.restore("a").rows == 0


def test_a_file_without_a_record_says_so(database: Database, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("loading\nstill loading\n")
    assert database.ingest("a", tmp_path / "out.log").warnings == [
        "no record was found in what is new; --as names its shape"
    ]
    assert database.ingest("a", tmp_path / "out.log").warnings == []


def test_mirrors_from_before_sources_were_noted_go_on(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(log_lines(1, 3))
    database.ingest("a", log)
    (Mirror("a").folder / "sources.json").unlink()
    log.write_bytes(log_lines(1, 5))
    assert database.ingest("a", log).rows == 2
    (Mirror("a").folder / "sources.json").write_bytes(b"{")
    log.write_bytes(log_lines(6, 6))
    database.ingest("a", log)
    assert Mirror("a").generation(TRAIN_LOG) == 2
    assert steps(database) == [1, 2, 3, 4, 5, 6]


def test_a_copy_that_was_broken_off_goes_on_where_it_was(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(log_lines(1, 2) + b'{"step"')
    second.write_bytes(log_lines(3, 4))
    append = Mirror.append
    budget = 0

    def fragile_append(mirror: Mirror, stream: str, data: bytes, cursor: Cursor) -> None:
        nonlocal budget
        budget -= 1
        if budget < 0:
            raise KeyboardInterrupt
        append(mirror, stream, data, cursor)

    monkeypatch.setattr(Mirror, "append", fragile_append)
    monkeypatch.setattr(held, "_BLOCK_BYTES", 9)
    for num_appends in range(15):
        mirror = Mirror(f"r{num_appends}")
        for file in (first, second, first, second):
            budget = num_appends
            with suppress(KeyboardInterrupt), open_log(file, "jsonl") as log:
                copy_log(log, mirror)
            budget = 99
            with open_log(file, "jsonl") as log:
                copy_log(log, mirror)
        assert mirror.path(TRAIN_LOG).read_bytes() == first.read_bytes() + b"\n" + second.read_bytes()
        assert mirror.generation(TRAIN_LOG) == 1


parts = st.lists(st.integers(1, 6), min_size=1, max_size=3)
readings = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 9), st.booleans(), st.booleans()), max_size=12
)


@settings(max_examples=100, deadline=None)
@example(sizes=[1, 1], readings=[(1, 1, 0, False, False), (0, 0, 1, False, False)])
@given(sizes=parts, readings=readings)
def test_whatever_part_is_read_again_every_line_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], readings: list[tuple[int, int, int, bool, bool]]
) -> None:
    """Parts grow, are cut inside a line, packed and renamed between the readings; each is read whole at the end."""
    folder = tmp_path_factory.mktemp("parts")
    contents = [[b'{"part": %d, "step": %d}\n' % (part, n) for n in range(size)] for part, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(folder / "home"))
        mirror = Mirror("r")
        grown = [0] * len(sizes)
        whole = [(part, 6, 0, False, False) for part in range(len(sizes))]
        for part, num_lines, num_bytes, is_packed, has_other_name in [*readings, *whole]:
            if part >= len(sizes):
                continue
            lines = contents[part]
            size = sum(map(len, lines[:num_lines])) + (num_bytes if num_lines < len(lines) else 0)
            grown[part] = max(grown[part], size)
            data = b"".join(lines)[: grown[part]]
            file = folder / f"{part}{'b' if has_other_name else ''}{'.gz' if is_packed else ''}"
            file.write_bytes(gzip.compress(data) if is_packed else data)
            with open_log(file, "jsonl") as log:
                copy_log(log, mirror)
            with open_log(file, "jsonl") as log:
                assert copy_log(log, mirror).num_bytes == 0
        assert mirror.generation(TRAIN_LOG) == 1
        found = mirror.path(TRAIN_LOG).read_bytes().splitlines(keepends=True)
        assert all(found.count(line) == 1 for lines in contents for line in lines)
        # Nothing else but the torn ends that another part came after.
        rest = [line.rstrip(b"\n") for line in found if not any(line in lines for lines in contents)]
        assert all(any(line.startswith(torn) for lines in contents for line in lines) for torn in rest)

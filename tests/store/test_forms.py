"""Which lines DuckDB may parse by itself: those whose form says all, counted when they are parsed."""

import json
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.runs import RunRecord
from dflash_tui.store import files, intake, rows
from dflash_tui.store import lines as lines_module
from dflash_tui.store.base import IngestProgress
from dflash_tui.store.database import Database
from dflash_tui.store.forms import Form, Forms
from dflash_tui.store.keys import Names
from dflash_tui.store.lines import Slice
from dflash_tui.store.logged import read_logged
from dflash_tui.store.rows import RowReader

from .conftest import grow, rows_of

KINDS = {
    "event": "VARCHAR",
    "step": "BIGINT",
    "loss": "DOUBLE",
    "eval_loss": "DOUBLE",
    "grad_clipped": "BOOLEAN",
    "position_acc": "DOUBLE[]",
    "accept_hist": "BIGINT[]",
    "path": "VARCHAR",
    "lr": "DOUBLE",
}


def form(line: bytes) -> Form | None:
    found = Forms(Names(KINDS, {})).of(line, 1)
    return next(iter(found))


@pytest.mark.parametrize(
    ("line", "right"),
    [
        (b'{"step": 7, "loss": 2.5}', Form((("step", "step"), ("loss", "loss")), (), 0, "train")),
        (b'{"step":7,"learning_rate":1e-05,"foo":null}',
         Form((("step", "step"), ("learning_rate", "lr")), (), 1, "train")),
        (b'{"event": "train", "loss": null}', Form((("event", "event"),), ("loss",), 0, None)),
        (b'{"eval_loss": 2.5}', Form((("eval_loss", "eval_loss"),), (), 0, "eval")),
        (b'{"grad_clipped": true, "position_acc": [0.5, 1]}\r',
         Form((("grad_clipped", "grad_clipped"), ("position_acc", "position_acc")), (), 0, "train")),
        (b'{"seed": 1}', Form((), (), 1, "note")),
    ],
)  # fmt: skip
def test_a_flat_object_of_figures_is_plain(line: bytes, right: Form) -> None:
    assert form(line) == right


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"[1]",
        b'{"step": 1,}',
        b'{"step": 1} {"step": 2}',
        b'{"step": 1, "step": 2}',
        b'{"lr": 1, "learning_rate": 2}',
        b'{"loss": NaN}',
        b'{"loss": "2.5"}',
        b'{"loss": true}',
        b'{"grad_clipped": 1}',
        b'{"position_acc": [0.5, "x"]}',
        b'{"accept_hist": [1, 2]}',
        b'{"event": "start", "step": 1}',
        b'{"event": 7}',
        b'{"note": "a\\u0062"}',
        b'{"note": "\xff"}',
        b'\xef\xbb\xbf{"step": 1}',
        b'{"step": 1}\x00',
        b'{"train": {"loss": 2.5}}',
        b'{"eval/loss": 2.5}',
        b'{"=step": 1}',
    ],
)
def test_all_else_is_read_by_itself(line: bytes) -> None:
    assert form(line) is None


def test_lines_that_differ_in_their_numbers_have_one_form() -> None:
    forms = Forms(Names(KINDS, {}))
    alike = b'{"step": 1, "loss": 2.5}\n{"step": 20000, "loss": -1.25e-07}'
    whole = form(b'{"step": 1, "loss": 2.5}')
    assert whole and forms.of(alike, 2) == {whole: 2}
    fewer = form(b'{"step": 1}')
    assert fewer and forms.of(alike + b'\n{"step": 3}', 3) == {whole: 2, fewer: 1}
    assert forms.of(alike + b'\n{"step":3}\n{"step": 4}', 4) == {whole: 2, fewer: 2}
    each = forms.of(alike + b'\n{"step": 3}\ngarbage', 4)
    assert isinstance(each, list)
    assert [found and len(found.columns) for found in each] == [2, 2, 1, None]


# Each has the form of a plain line: only its count gives it away.
ODD = [
    (b'{"step": 5, "loss": 1.2.3}', "not JSON"),
    (b'{"step": 5, "loss": }', "not JSON"),
    (b'{"step": 5, "loss": -}', "not JSON"),
    (b'{"step": 05, "loss": 2}', "not JSON"),
    (b'{"step": 5.5, "loss": 2}', None),
    (b'{"step": 9007199254740993, "loss": 2}', None),
    (b'{"step": 5, "loss5": 2}', None),
]


@pytest.mark.parametrize(("odd", "reason"), ODD)
@pytest.mark.parametrize("few_lines", [1, 64])
def test_one_odd_line_among_many_is_found_and_read_exactly(
    database: Database, monkeypatch: pytest.MonkeyPatch, odd: bytes, reason: str | None, few_lines: int
) -> None:
    monkeypatch.setattr(rows, "FEW_LINES", few_lines)
    lines = [json.dumps({"step": step, "loss": 2.5}).encode() for step in range(1, 1001)]
    lines[699] = odd
    database.register_run(RunRecord("r", "r", "ingested"))
    grow("r", b"".join(line + b"\n" for line in lines))
    summary = database.take_in("r")
    assert (summary.rows, summary.rejects) == ((999, 1) if reason else (1000, 0))
    if reason:
        [reject] = summary.first_rejects
        assert (reject.line_no, reject.byte_offset) == (700, sum(len(line) + 1 for line in lines[:699]))
        assert reason in reject.reason
    else:
        [(step, loss, extra)] = rows_of(database, "select step, loss, extra from records where line_no = 700")
        record = json.loads(odd)
        assert step == (record["step"] if record["step"] == int(record["step"]) else None)
        assert loss == record.get("loss")
        assert json.loads(extra or "{}") == {
            key: value for key, value in record.items() if (key == "step" and step is None) or key == "loss5"
        }
    others = rows_of(database, "select count(*), sum(step) from records where line_no <> 700")
    assert others == [(999, sum(range(1, 1001)) - 700)]


def test_a_reader_gives_one_batch_for_plain_lines_of_several_sources(database: Database) -> None:
    logged = read_logged(database._db)
    reader = RowReader(Names(logged.kinds, {}), logged, files.spill_folder(database.path))
    data = [b'{"step": 1, "loss": 2}\n{"step": 2, "loss": 3}', b'{"step": 9, "lr": 0.1}\n{"epoch": 3}']
    slices = [rows.SourceSlice(n, Slice(0, len(part) + 1, 1, 2, part)) for n, part in enumerate(data)]
    [batch] = reader.read(database._db, slices)
    counts = [batch.sources[n].staged for n in (0, 1)]
    assert [(c.num_rows, c.num_without_step, c.first_step, c.last_step) for c in counts if c] == [
        (2, 0, 1, 2),
        (2, 1, 9, 9),
    ]
    assert [c.keys for c in counts if c] == [{"step", "loss"}, {"step", "lr", "epoch"}]


def test_an_ingest_that_is_broken_off_leaves_nothing_staged(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (lines_module, intake):
        monkeypatch.setattr(module, "SLICE_LINES", 50)
    database.register_run(RunRecord("r", "r", "ingested"))
    grow("r", b"".join(b'{"step": %d, "loss": 2.5}\n' % step for step in range(1, 2001)))
    monkeypatch.setattr(intake, "_COMMIT_LINES", 200)

    def stop(progress: IngestProgress) -> None:
        if progress.rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.take_in("r", stop)
    assert (
        database._db.execute("select table_name from duckdb_tables() where database_name = 'staging'").fetchall() == []
    )
    assert rows_of(database, "select count(*) from steps") == [(200,)]
    assert database.take_in("r").rows == 1800
    assert rows_of(database, "select count(*), count(distinct step), max(step) from steps") == [(2000, 2000, 2000)]


@pytest.mark.parametrize("name", ["a[b]*c'd", 'a"b {c,d} ~', "ä $x"])
def test_the_store_may_lie_in_a_folder_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # DuckDB reads the lines from a file beside the database, and takes such letters for patterns.
    monkeypatch.setenv("DFLASH_TUI_HOME", str(tmp_path / name))
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        database.register_run(RunRecord("r", "r", "ingested"))
        grow("r", b'{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.25, "odd": 1}\n')
        database.take_in("r")
        found = rows_of(database, "select step, loss, extra from records order by step")
    assert found == [(1, 2.5, None), (2, 2.25, '{"odd":1}')]
    # Nothing of it stays.
    assert [entry.name for entry in paths.data_dir().iterdir() if entry.name.endswith(".tmp")] == []


def test_no_room_for_the_lines_is_said_and_loses_nothing(database: Database) -> None:
    database.register_run(RunRecord("r", "r", "ingested"))
    grow("r", b'{"step": 1, "loss": 2.5}\n')
    place = files.spill_folder(database.path)
    place.write_text("in the way")
    with pytest.raises(DflashError, match=r"dflash\.duckdb\.tmp.* cannot be written \(.+\)"):
        database.take_in("r")
    place.unlink()
    assert database.take_in("r").rows == 1


# Two lines of one form, and what the second is to be: its step, the named cell, `extra`.
LOOKALIKES = [
    (b'{"step":1,"loss":2,"ddtree_streak4":3}', b'{"step":2,"loss":2,"ddtree_streak8":3}', "ddtree_streak8", 3.0, {}),
    (b'{"step":1,"lr/1":0.5}', b'{"step":2,"lr/0":0.5}', "lr", 0.5, {}),
    (b'{"stp":1,"loss":2}', b'{"step":2,"loss":2}', "loss", 2.0, {}),
    (b'{"evnt":"start","step":1}', b'{"event":"start","step":2}', "event", "start", {}),
    (b'{"step":1,"loss":2,"tst_loss":3}', b'{"step":2,"loss":2,"test_loss":3}', "eval_loss", 3.0, {}),
    (b'{"step":1,"position__acc":0.5}', b'{"step":2,"position_1_acc":0.5}', "position_acc", [0.5], None),
    (b'{"step":1,"a1":2,"a2":3}', b'{"step":2,"a1":2,"a1":3}', "step", 2, {"a1": 3}),
    (
        b'{"step":1,"bucket_loss":{"1":2,"2":3}}',
        b'{"step":2,"bucket_loss":{"1":2,"1":3}}',
        "bucket_loss",
        '{"1":3}',
        {},
    ),
    (b'{"step":1,"foo":[{"1":2,"2":3}]}', b'{"step":2,"foo":[{"1":2,"1":3}]}', "step", 2, {"foo": [{"1": 3}]}),
]


@pytest.mark.parametrize("between", [0, 300])
@pytest.mark.parametrize(("first", "second", "column", "cell", "extra"), LOOKALIKES)
def test_a_key_is_what_it_says_whatever_was_read_before_it(
    database: Database, first: bytes, second: bytes, column: str, cell: object, extra: object, between: int
) -> None:
    # Also where it was another run that the first came from.
    for run_id in ("other", "r"):
        database.register_run(RunRecord(run_id, run_id, "ingested"))
    plain = b"".join(b'{"step": %d, "loss": 2.5}\n' % step for step in range(100, 100 + between))
    grow("other", first + b"\n")
    database.take_in("other")
    grow("r", first + b"\n" + plain + second + b"\n")
    assert database.take_in("r").rows == between + 2
    last = between + 2
    [(step, found, rest)] = rows_of(
        database, f'select step, "{column}", extra from records where run = $run and line_no = $n', run="r", n=last
    )
    assert (step, found) == (2, cell)
    if extra is not None:
        assert json.loads(rest or "{}") == extra


@pytest.mark.parametrize(
    ("odd", "extra"),
    [
        (b'{"step": 1' + b"0" * 400 + b"}", "step"),
        (b'{"step": 7, "rank": 1' + b"0" * 400 + b"}", "rank"),
        (b'{"step": 7, "accept_hist": [1' + b"0" * 400 + b"]}", "accept_hist"),
        (b'{"step": 7, "' + b"train/" * 990 + b'loss": 1}', "train/" * 990 + "loss"),
    ],
)
def test_no_line_stops_the_others(database: Database, odd: bytes, extra: str) -> None:
    for run_id in ("good", "odd"):
        database.register_run(RunRecord(run_id, run_id, "ingested"))
    grow("good", b'{"step": 1, "loss": 2}\n')
    grow("odd", b'{"step": 1, "loss": 2}\n' + odd + b'\n{"step": 8, "loss": 2}\n')
    found = database.take_in_all(["good", "odd", "good"])
    assert {run_id: summary.rows for run_id, summary in found.items()} == {"good": 1, "odd": 3}
    [(kept,)] = rows_of(database, "select extra from records where run = 'odd' and line_no = 2")
    assert extra in json.loads(kept)


def test_a_null_cell_beside_an_unknown_key_is_a_plain_line(database: Database) -> None:
    line = form(b'{"step": 1, "loss": 2, "lr": null, "foo": 1}')
    assert line and (line.nulls, line.num_unknown) == (("lr",), 1)
    database.register_run(RunRecord("r", "r", "ingested"))
    grow("r", b'{"step": 1, "loss": 2, "lr": null, "foo": 1}\n')
    database.take_in("r")
    assert rows_of(database, "select step, lr, extra from records") == [(1, None, '{"foo":1}')]


def test_steps_are_followed_in_order_however_many_rows_a_line_has(database: Database) -> None:
    # More rows than DuckDB reads in one thread.
    database.register_run(RunRecord("r", "r", "ingested"))
    objects = [b"".join(b'{"step":%d}' % step for step in range(at, at + 5)) for at in range(1, 150_001, 5)]
    grow("r", b"\n".join(objects) + b"\n")
    assert database.take_in("r").last_step == 150_000
    grow("r", b'{"step":149000}\n')
    assert database.take_in("r").attempts == 2

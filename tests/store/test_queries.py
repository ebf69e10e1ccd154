"""Answers: values as they are, rows as they come, limits of time, cancelling, parameters."""

import json
import math
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import paths
from dflash_tui.errors import QueryError, TimedOutError, UsageError
from dflash_tui.runs import RunEvent, RunRecord, Window
from dflash_tui.store.access import writer
from dflash_tui.store.base import Store
from dflash_tui.store.client import StoreClient
from dflash_tui.store.database import Database
from dflash_tui.store.queries import RunningQuery

from .conftest import rows_of

ENDLESS = "select count(*) from range(100000000) a, range(100000) b"


@pytest.fixture(params=["database", "client"])
def store(home: Path, empty_database: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """The same answers, whether asked of the open database or through the owner's socket."""
    paths.private_dir(paths.data_dir())
    shutil.copy(empty_database, paths.database_file())
    with writer() as database:
        assert isinstance(database, Database)
        if request.param == "client":
            with StoreClient() as client:
                yield client
        else:
            yield database


def test_case50_values_keep_their_kind(store: Store, data: Path) -> None:
    case = json.loads((data / "cases/case50_json_nan.expected.json").read_text())
    with store.query(case["query"]) as answer:
        assert answer.columns == ["a", "b", "c", "d", "e", "t"]
        assert answer.types[:3] == ["DOUBLE", "DOUBLE", "DECIMAL(2,1)"]
        [(nan, inf, decimal, null, big, time_text)] = answer.rows()
    assert math.isnan(nan)
    assert (inf, decimal, null, big, time_text) == (math.inf, 1.5, None, 9007199254740993, "2026-01-02T03:04:05")


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("170141183460469231731687303715884105727::hugeint", 2**127 - 1),
        ("'-9223372036854775808'::bigint", -(2**63)),
        ("18446744073709551615::ubigint", 2**64 - 1),
        ("[1, null, 170141183460469231731687303715884105727::hugeint]", [1, None, 2**127 - 1]),
        ("{'a': 1, 'b': [date '2026-01-02']}", {"a": 1, "b": ["2026-01-02"]}),
        ("map {1: 'x'}", {"1": "x"}),
        ("date '2026-01-02'", "2026-01-02"),
        ("time '03:04:05'", "03:04:05"),
        ("timestamptz '2026-01-02 03:04:05+00'::timestamptz at time zone 'UTC'", "2026-01-02T03:04:05"),
        ("interval '90 minutes'", "01:30:00"),
        ("interval '1 month 2 days'", "1 month 2 days"),
        ("'infinity'::date", "infinity"),
        ("timestamp '2026-01-02 03:04:05.25'", "2026-01-02T03:04:05.25"),
        ("'-infinity'::timestamp", "-infinity"),
        ("timestamp_ns '2026-01-02 03:04:05.123456789'", "2026-01-02T03:04:05.123456789"),
        ("'0044-03-15 (BC) 12:00:00'::timestamp", "0044-03-15 (BC)T12:00:00"),
        ("[interval '1 month', null]", ["1 month", None]),
        (
            "{'at': timestamp_ns '2026-01-02 03:04:05.123456789', 'x': 1}",
            {"at": "2026-01-02 03:04:05.123456789", "x": 1},
        ),
        ("'DATE'::enum('DATE', 'x')", "DATE"),
        ("'x'::blob", b"x"),
        ("true", True),
        ("'hä \u202e'", "hä \u202e"),
        ("1.25::decimal(30, 2)", 1.25),
        ("12345678901234567890.25::decimal(30, 2)", "12345678901234567890.25"),
        ("uuid '00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"),
        ("'{\"a\": 1}'::json", '{"a": 1}'),
    ],
)
def test_a_cell_is_plain_and_exact(store: Store, sql: str, value: Any) -> None:
    [(cell,)] = rows_of(store, f"select {sql}")
    assert cell == value
    assert type(cell) is type(value)


def test_times_with_a_zone_are_text_without_pytz(store: Store) -> None:
    with store.query("select to_timestamp(0) as t, 1 as t union all select to_timestamp(1), 2 order by 2") as answer:
        assert answer.columns == ["t", "t"]
        rows = answer.rows()
    assert [row[1] for row in rows] == [1, 2]
    assert [text[:4] + text[10] for text, _ in rows] in (["1970T"] * 2, ["1969T"] * 2)


def test_times_in_a_statement_that_begins_and_ends_in_its_own_way(store: Store) -> None:
    for end in (";", " ; ; -- ;", "\n/* ; */", " -- é;"):
        assert rows_of(store, f"select ';é' as x, date '2026-01-02' as d where $n = 1{end}", n=1) == [
            (";é", "2026-01-02")
        ]
    assert rows_of(store, "from (values (date '2026-01-03'), (date '2026-01-02')) t(d) order by d limit $n", n=1) == [
        ("2026-01-02",)
    ]
    for begin in (";", " ;\n; ", "/* é; */ ;", "-- ;\n;;"):
        with store.query(f"{begin}select 'a' as one, [timestamp 'infinity'] as two") as answer:
            assert (answer.columns, answer.rows()) == (["one", "two"], [("a", ["infinity"])]), begin
    with pytest.raises(QueryError, match="Could not convert") as caught:
        rows_of(store, "select 'é' as x, date '2026-01-02' as d, ('x' || range)::int from range(3)")
    assert caught.value.column == 56


def test_a_large_answer_comes_in_batches(store: Store) -> None:
    with store.query("select range as n, repeat('x', 50) as text from range(300000)") as answer:
        batches = answer.batches()
        first = next(batches)
        assert 1 <= len(first) < 10_000
        total, last = len(first), first[-1][0]
        for batch in batches:
            total, last = total + len(batch), batch[-1][0]
    assert (total, last) == (300_000, 299_999)


def test_an_answer_without_rows_has_columns(store: Store) -> None:
    with store.query("select step, loss from steps") as answer:
        assert (answer.columns, answer.types, answer.rows()) == (["step", "loss"], ["BIGINT", "DOUBLE"], [])


def test_the_time_limit_ends_a_query_whose_first_interrupt_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes between two steps of the engine is."""
    interrupt, heard = RunningQuery._interrupt, []

    def interrupt_later(query: RunningQuery) -> None:
        if heard:
            interrupt(query)
        heard.append(query)

    monkeypatch.setattr(RunningQuery, "_interrupt", interrupt_later)
    with pytest.raises(TimedOutError, match=r"longer than 0.2 s"):
        rows_of_slow(store, ENDLESS, 0.2)
    assert len(heard) > 1


def test_the_time_limit_ends_a_query(store: Store) -> None:
    begun = time.monotonic()
    with pytest.raises(TimedOutError, match=r"longer than 0.2 s"):
        rows_of_slow(store, ENDLESS, 0.2)
    assert time.monotonic() - begun < 5
    assert rows_of(store, "select 1") == [(1,)]


def rows_of_slow(store: Store, sql: str, timeout_s: float) -> Any:
    with store.query(sql, timeout_s=timeout_s) as answer:
        return answer.rows()


def test_a_quick_query_is_not_touched_by_its_limit(store: Store) -> None:
    with store.query("select range from range(5)", timeout_s=0.3) as answer:
        batches = answer.batches()
        assert next(batches) == [(0,), (1,), (2,), (3,), (4,)]


def test_the_time_limit_holds_while_rows_are_read_slowly(store: Store) -> None:
    with store.query("select range from range(100000000)", timeout_s=0.3) as answer:
        batches = answer.batches()
        next(batches)
        time.sleep(0.5)
        with pytest.raises(TimedOutError, match=r"longer than 0.3 s"):
            for _ in batches:
                pass


def test_closing_early_gives_the_cursor_back(store: Store) -> None:
    for _ in range(20):
        with store.query("select * from range(10000000)") as answer:
            next(answer.batches())
        answer.close()
    assert rows_of(store, "select 1") == [(1,)]


def test_cancelling_from_another_thread(home: Path) -> None:
    with writer() as database:
        assert isinstance(database, Database)
        query = database.running_query()
        told: list[Exception] = []

        def work() -> None:
            try:
                query.start(ENDLESS, None, None).rows()
            except QueryError as e:
                told.append(e)

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            query.cancel()
            thread.join(0.02)
        query.close()
        assert [str(error) for error in told] == ["the query was cancelled"]


def test_parameters_are_bound(store: Store) -> None:
    assert rows_of(store, "select $a + 1, $b", a=41, b="'; drop table runs") == [(42, "'; drop table runs")]
    with pytest.raises(QueryError, match=r"asks for \$step, which has no value; did you mean 'stp'\?"):
        rows_of(store, "select $step, $stp", stp=1)
    with pytest.raises(QueryError, match=r"asks for \$step, which has no value; give it with -p step=\.\.\."):
        rows_of(store, "select $step")
    with pytest.raises(QueryError, match=r"has no parameter \$x; it has \$a"):
        rows_of(store, "select $a", a=1, x=2)


def test_an_error_while_rows_come_is_an_error(store: Store) -> None:
    with pytest.raises(QueryError, match="Could not convert"):
        rows_of(store, "select (case when range = 250000 then 'x' else '1' end)::int from range(300000)")


def test_runs_are_found_by_id_name_and_prefix(store: Store) -> None:
    for run_id, name, created in (("alpha-1", "exp", 1.0), ("alpha-2", "exp", 2.0), ("beta", "other", 3.0)):
        store.register_run(RunRecord(run_id, name, "train", "box", "/w", "/w/log", created))
    assert [run.run_id for run in store.runs()] == ["beta", "alpha-2", "alpha-1"]
    assert store.find("alpha-1")[0].run_id == "alpha-1"
    found, notice = store.find("exp")
    assert found.run_id == "alpha-2"
    assert notice == "2 runs are called 'exp': this is the newest, alpha-2"
    found, notice = store.find("be")
    assert (found.run_id, notice) == ("beta", None)
    with pytest.raises(UsageError, match=r"'alp' may be 2 runs \(alpha-2, alpha-1\)"):
        store.find("alp")
    with pytest.raises(UsageError, match=r"there is no run 'betta': did you mean 'beta'\?"):
        store.find("betta")
    with pytest.raises(UsageError, match=r"there is no run '\\x1b\[31m'"):
        store.find("\x1b[31m")


def test_a_run_is_what_its_events_say(store: Store) -> None:
    record = RunRecord("r", "my run", "train", "box", "/w/r", "/w/r/log", time.time() - 60, None, "c0de", {"lr": 6e-4})
    store.register_run(record)
    store.event("r", RunEvent(10.0, "state", "running", attempt=1, pid=77))
    store.event("r", RunEvent(11.0, "note", text="hello"))
    store.event("r", RunEvent(12.0, "state", "running", attempt=1, pid=77))
    detail = store.detail("r")
    assert (detail.record, detail.pid, detail.state_since, detail.attempts) == (record, 77, 10.0, [])
    assert detail.run.state == "running"
    assert detail.run.age_s == pytest.approx(60, abs=30)
    store.event("r", RunEvent(20.0, "state", "failed", "oom-gpu", code=1, attempt=1))
    detail = store.detail("r")
    assert (detail.run.state, detail.run.reason, detail.run.code, detail.pid) == ("failed", "oom-gpu", 1, None)
    assert rows_of(store, 'select kind, state, text from events order by "time"')[1] == ("note", None, "hello")
    store.register_run(RunRecord("r", "renamed", "train", "box", "/w/r", "/w/r/log", 5.0))
    assert (store.detail("r").run.name, store.detail("r").run.state) == ("renamed", "failed")
    with pytest.raises(UsageError, match="there is no run 'x' in the store"):
        store.detail("x")
    with pytest.raises(UsageError, match="there is no run 'x' in the store"):
        store.event("x", RunEvent(1.0, "note", text="t"))


def test_panels_and_windows_come_as_they_are(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(1, 41)))
    assert store.ingest("a", log).rows == 40
    window = store.window("a", Window.last_rows(10))
    assert (window.kind, window.n, window.first, window.last) == ("last", 10, 31, 40)
    [loss] = store.report("a", ["loss"], Window(), 20)
    assert (loss.name, loss.state) == ("loss", "rows")
    with pytest.raises(UsageError, match="no panel named 'los'"):
        store.report("a", ["los"], Window(), 20)


def test_a_snapshot_is_a_database_of_its_own(store: Store, tmp_path: Path) -> None:
    store.register_run(RunRecord("r", "r", "train"))
    store.snapshot(tmp_path / "copy.duckdb")
    store.register_run(RunRecord("later", "later", "train"))
    with Database(tmp_path / "copy.duckdb", read_only=True) as copy:
        assert [run.run_id for run in copy.runs()] == ["r"]
    assert paths.database_file().exists()

"""`query`: what each format says, what is cut and told, what a file holds when something goes wrong."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import dflash, on_terminal, refused, wait_until


@pytest.fixture(scope="module")
def some_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 50 steps, for tests that leave it as it is."""
    home = tmp_path_factory.mktemp("query")
    log = home / "golden.jsonl"
    log.write_text("".join(json.dumps({"step": s, "loss": 4 / s, "note": f"n{s}"}) + "\n" for s in range(1, 51)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(home))
        assert dflash("ingest", str(log)).code == 0
    return home


@pytest.fixture(autouse=True)
def some_store(some_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(some_home))


# A column a kind of value: NULL, the empty text, a text like NULL, NaN, infinities, large and small numbers, ...
KINDS = r"""
select null as n, '' as e, 'NULL' as t, 'NaN'::double as nan, '-inf'::double as inf, 9007199254740993::bigint as big,
  170141183460469231731687303715884105727::hugeint as huge, 1.50::decimal(10, 2) as dec,
  12345678901234567890.25::decimal(30, 2) as wide, 0.1::double as f, true as yes, [1, null] as l,
  {'a': 'x', 'b': 'inf'::double} as s, '{"k": [1.0, "é"]}'::json as j, '\x00a\xff'::blob as b,
  timestamp '2026-01-02 03:04:05.25' as at, 'a,b "c" | d
e' as text, 1 as f
"""


def test_every_kind_of_value_in_csv() -> None:
    said = dflash("query", KINDS)
    assert said.code == 0, said.err
    head, line, rest = said.out.split("\n", 2)
    assert head == "n,e,t,nan,inf,big,huge,dec,wide,f,yes,l,s,j,b,at,text,f"
    assert line == (
        ',"",NULL,NaN,-Infinity,9007199254740993,170141183460469231731687303715884105727,1.50,12345678901234567890.25,0.1,'
        'true,"[1, null]","{""a"": ""x"", ""b"": ""Infinity""}","{""k"": [1.0, ""é""]}",\\x00a\\xff,'
        '2026-01-02T03:04:05.25,"a,b ""c"" | d'
    )
    assert rest == 'e",1\n'
    [row] = list(csv.DictReader(io.StringIO(said.out)))
    assert json.loads(row["l"]) == [1, None] and row["text"] == 'a,b "c" | d\ne'


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_every_kind_of_value_in_json(form: str) -> None:
    said = dflash("query", KINDS, "--format", form)
    assert said.out.isascii() and said.code == 0
    row = said.json()[0] if form == "json" else said.json()
    assert row == {
        "n": None, "e": "", "t": "NULL", "nan": "NaN", "inf": "-Infinity", "big": 9007199254740993, "huge": 2**127 - 1,
        "dec": 1.5, "wide": 12345678901234567890.25, "f": 0.1, "yes": True, "l": [1, None],
        "s": {"a": "x", "b": "Infinity"},
        "j": {"k": [1.0, "é"]}, "b": "\\x00a\\xff", "at": "2026-01-02T03:04:05.25", "text": 'a,b "c" | d\ne', "f_1": 1,
    }  # fmt: skip
    assert '"wide": 12345678901234567890.25,' in said.out, "every digit of a decimal"


def test_every_kind_of_value_for_eyes() -> None:
    head, line = dflash("query", KINDS, "--format", "table").out.splitlines()
    assert line.split()[:9] == [
        "NULL", '""', '"NULL"', "NaN", "-Infinity", "9007199254740993", str(2**127 - 1), "1.50",
        "12345678901234567890.25",
    ]  # fmt: skip
    assert line.endswith('a,b "c" | d\\ne  1') and head.split()[-2:] == ["text", "f"]
    head, rule, line = dflash("query", KINDS, "--format", "md").out.splitlines()
    assert head.startswith("| n | e | t | nan |") and rule.startswith("| --- | --- | --- | ---: |")
    assert line.startswith('| NULL | "" | "NULL" | NaN | -Infinity | 9007199254740993 |')
    assert line.endswith(r'| a,b "c" \| d<br>e | 1 |')
    assert line.replace(r"\|", "").count("|") == head.count("|") == rule.count("|")


def test_an_answer_without_rows() -> None:
    sql = "select step, loss from steps where false"
    for form, text in (
        ("csv", "step,loss\n"), ("json", "[]\n"), ("jsonl", ""), ("table", "step  loss\n"),
        ("md", "| step | loss |\n| ---: | ---: |\n"),
    ):  # fmt: skip
        said = dflash("query", sql, "--format", form)
        assert (said.code, said.out, said.err) == (0, text, "")


def test_a_lonely_null_is_a_line_of_its_own() -> None:
    assert dflash("query", "select unnest(['a', null, '']) as x").out == 'x\na\n\n""\n'


def test_a_limit_says_that_it_cut() -> None:
    sql = "select step from steps order by step"
    said = dflash("query", sql, "--limit", "3")
    assert said.out == "step\n1\n2\n3\n"
    assert said.err == "showing the first 3 rows, and there are more: a larger --limit shows them\n"
    for limit in ("50", "60"):
        said = dflash("query", sql, "--limit", limit)
        assert (len(said.out.splitlines()), said.err) == (51, "")
    said = dflash("query", "select * from range(1000000)", "--limit", "0", "--format", "json")
    assert said.json() == [] and "there are more" in said.err


def test_a_table_on_a_terminal_has_a_limit_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = on_terminal("query", "select range as r from range(5000)").out.splitlines()
    assert len(shown) == 102
    assert shown[-1] == ("showing the first 100 rows, and there are more: --limit N shows N of them, --format csv all")
    assert len(dflash("query", "select range as r from range(5000)", "--format", "table").out.splitlines()) == 5001
    shown = on_terminal(
        "query", "select 'x' as a, repeat('y', 200) as b, 12345678 as c, '\x1b[31m' as d"
    ).out.splitlines()
    assert all(len(line) <= 80 for line in shown)
    assert "12345678" in shown[1] and "yyy…" in shown[1] and r"\x1b[31m" in shown[1]
    shown = on_terminal("query", "select * from steps limit 1").out.splitlines()
    assert shown[-1].startswith("showing ") and "columns" in shown[-1]


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "ndjson", "md", "txt"])
def test_a_file_has_what_stdout_would(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out.{ending}"
    form = {"ndjson": "jsonl", "txt": "table"}.get(ending, ending)
    said = dflash("query", KINDS, "--output", str(file))
    assert (said.code, said.out, said.err) == (0, "", "")
    assert file.read_bytes().decode() == dflash("query", KINDS, "--format", form).out
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_replaced_as_a_whole_or_left(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("old\n")
    file.chmod(0o640)
    for sql, code, words in (
        ("select los from steps", 2, "los"),
        ("select (case when range = 250000 then 'x' else '1' end)::int from range(300000)", 2, "Could not convert"),
        ("select a.range from range(1000000000) a, range(1000000000) b where a.range < 0", 4, "0.4 s"),
    ):
        limit = ["--timeout", "0.4"] if code == 4 else []
        assert words in refused(dflash("query", sql, "--output", str(file), *limit), code)
        assert file.read_text() == "old\n" and list(tmp_path.iterdir()) == [file]
    link = tmp_path / "link"
    link.symlink_to(file)
    assert dflash("query", "select 1 as a", "--output", str(link)).code == 0
    assert file.read_text() == "a\n1\n" and link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    assert "is a folder" in refused(dflash("query", "select 1", "--output", str(tmp_path)), 2)
    assert "No such file or directory" in refused(
        dflash("query", "select 1", "--output", str(tmp_path / "x" / "y.csv")), 2
    )
    assert "give --format" in refused(dflash("query", "select 1", "--output", str(tmp_path / "y.csv.gz")), 2)
    assert list(tmp_path.iterdir()) == []


def test_no_room_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    assert "/dev/full: cannot be written (No space left on device)" in refused(
        dflash("query", "select * from range(100000)", "--output", "/dev/full"), 1
    )
    command = f'"{sys.executable}" -m dflash_tui query "select * from range(100000)" > /dev/full'
    for env in ({"PYTHONUNBUFFERED": "1"}, {"PYTHONUNBUFFERED": ""}):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ, **env})
        assert (done.returncode, done.stderr) == (
            1,
            "dflash-tui: stdout: cannot be written (No space left on device)\n",
        )


def test_a_file_that_grows_beyond_what_is_allowed_leaves_nothing(tmp_path: Path) -> None:
    command = f'ulimit -f 64; "{sys.executable}" -m dflash_tui query "select * from range(900000)" --output out.csv'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "dflash-tui: out.csv: cannot be written (File too large)\n")
    assert list(tmp_path.iterdir()) == []


def test_stats_are_told_on_stderr(tmp_path: Path) -> None:
    said = dflash("query", "select step from steps", "--stats")
    told = dict(pair.split("=") for pair in said.err.split())
    assert list(told) == ["rows", "bytes", "first_row_ms", "total_ms", "answered_by"]
    assert (told["rows"], told["bytes"], told["answered_by"]) == ("50", str(len(said.out)), "direct")
    assert 0 < float(told["first_row_ms"]) <= float(told["total_ms"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["select 1", "--fromat", "csv"], "'--format'"),
        (["select 1", "--json"], "use --format json"),
        (["select 1", "--format", "jsn"], "'json'"),
        (["select", "1"], "put it in quotes"),
        ([], "there is no query"),
        (["select 1", "--limit", "x"], "--limit: invalid int value: 'x'"),
        (["select 1", "--limit", "-1"], "0 or more"),
        (["select 1", "--timeout", "0"], "more than 0"),
        (["select 1", "--timeout", "nan"], "more than 0"),
        (["select 1", "--output"], "expected one argument"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], told: str) -> None:
    assert told in refused(dflash("query", *words), 2)


def test_help_names_every_option() -> None:
    said = dflash("query", "--help")
    assert said.code == 0 and said.err == ""
    for option in ("-p", "--format", "--output", "--limit", "--timeout", "--stats"):
        assert option in said.out


def test_a_query_may_begin_with_a_comment() -> None:
    assert dflash("query", "-- note\nselect 2 as two").out == "two\n2\n"
    assert dflash("query", "--format", "json", "--\nselect 2 as two").json() == [{"two": 2}]


@pytest.mark.parametrize("form", ["csv", "json", "md", "table"])
def test_the_schema_names_tables_columns_types_units_and_meanings(form: str) -> None:
    said = dflash("query", "--schema", "--format", form)
    assert (said.code, said.err) == (0, "")
    assert len(said.out.splitlines()) > 150
    if form == "json":
        rows = {(row["table"], row["column"]): row for row in said.json()}
        assert rows["steps", "*"]["type"] == "view"
        assert rows["steps", "tok_per_sec"] == {
            "table": "steps", "column": "tok_per_sec", "type": "DOUBLE", "unit": "tokens/s",
            "means": "Tokens of the target a second of wall time.",
        }  # fmt: skip
        assert not {"logged", "cursors", "keys", "store"} & {table for table, _ in rows}


def test_the_schema_is_told_before_there_is_a_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(home))
    assert "steps,loss,DOUBLE,nats," in dflash("query", "--schema").out
    assert not home.exists()
    assert len(on_terminal("query", "--schema").out.splitlines()) > 150
    assert "ask for one" in refused(dflash("query", "--schema", "select 1"), 2)


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.9])
def test_ctrl_c_ends_a_query_whatever_the_database_does(delay_s: float) -> None:
    """DuckDB alone, in the main thread, hears of it now and then."""
    sql = "select count(*) from range(1000000000) a, range(1000000000) b where a.range < b.range"
    process = subprocess.Popen([sys.executable, "-m", "dflash_tui", "query", sql], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    wait_until(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) > 1)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    assert (process.wait(20), process.stderr.read()) == (130, "")
    process.stderr.close()


def test_the_place_of_an_error_is_shown_on_a_terminal_alone() -> None:
    sql = "select 'é',\n  los from steps"
    column = sql.index("los") + 1
    told = f"dflash-tui: there is no column 'los' here; did you mean 'loss'? (column {column})"
    assert refused(dflash("query", sql), 2) == told
    assert on_terminal("query", sql).out.splitlines() == [told, "  los from steps", "  ^"]


def test_a_plan_is_drawn() -> None:
    shown = dflash("query", "explain select loss from steps", "--format", "table").out
    assert len(shown.splitlines()) > 5 and "SCAN" in shown.upper()


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "md", "table"])
def test_rows_come_at_once_and_none_is_kept(form: str) -> None:
    """A trillion rows: whoever waited for the last one, or kept the first, would never get here."""
    sql = "select range as n, repeat('x', 100) as t from range(1000000000000)"
    command = [sys.executable, "-m", "dflash_tui", "query", sql, "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for _ in range(400_000):
            assert process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    # In KiB. DuckDB alone takes 100 MB, and 400,000 rows as Python objects would take as much again.
    assert int(status.partition("VmHWM:")[2].split()[0]) < 170_000

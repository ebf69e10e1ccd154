"""Commands that ask: what they print, what they refuse, and with which exit code."""

import csv
import io
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from .conftest import dflash, from_scratch, refused, watching

pytestmark = pytest.mark.usefixtures("home")


def write_log(folder: Path) -> Path:
    file = folder / "story log.jsonl"
    rows: list[dict[str, object]] = [{"event": "start", "time": 1000.0, "config": {"total_steps": 500}}]
    rows += [
        {"step": s, "loss": 4 / s, "accuracy": s / 100, "time": 1000.0 + 2 * s, "note": f"n{s}"} for s in range(1, 51)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


@pytest.fixture(scope="module")
def golden_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run `golden`, for the tests that leave it as it is."""
    home = tmp_path_factory.mktemp("golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(home))
        assert dflash("ingest", str(write_log(home)), "--run", "golden").code == 0
    return home


@pytest.fixture
def golden(golden_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(golden_home))


def test_without_a_store_the_next_step_is_named() -> None:
    assert "ingest" in refused(dflash("runs"), 2)
    assert "ingest" in refused(dflash("query", "select 1"), 2)


def test_ingest_then_ask_in_every_format(log: Path) -> None:
    said = dflash("ingest", str(log), "--run", "golden")
    assert (said.code, said.err) == (0, "")
    assert "golden: 51 rows, 0 rejected" in said.out

    sql = "select step, loss, extra->>'note' as note from steps where step <= 2 order by step"
    rows = list(csv.DictReader(io.StringIO(dflash("query", sql).out)))
    assert rows == [{"step": "1", "loss": "4.0", "note": "n1"}, {"step": "2", "loss": "2.0", "note": "n2"}]
    assert dflash("query", "-", "--format", "json", stdin=sql).json()[1] == {"step": 2, "loss": 2.0, "note": "n2"}
    assert "loss" in dflash("query", sql, "--format", "table").out.splitlines()[0]

    [run] = dflash("runs", "--json").json()
    assert (run["run_id"], run["state"], run["host"], run["step"], run["total_steps"]) == (
        "golden", "absent", None, 50, 500,
    )  # fmt: skip
    status = dflash("status", "gold", "--json").json()
    assert status["attempts"][0]["first_step"] == 1 and status["checkpoint"] is None

    report = dflash("report", "golden", "--json", "--last", "10").json()
    assert report["window"] == {"kind": "last", "n": 10, "first": 41, "last": 50}
    vitals = report["panels"]["vitals"]
    assert vitals["columns"] == ["metric", "stat", "value", "n", "note"]
    [step] = [row for row in vitals["rows"] if row[0] == "step"]
    assert step[2] == 50
    assert report["panels"]["lr"]["state"] == "empty" and "lr" in report["panels"]["lr"]["why"]
    two = dflash("report", "golden", "--panel", "windows", "--windows", "1..10", "41..50", "--json").json()
    assert two["panels"]["windows"]["headline"] == "a 1..10 · b 41..50"
    words = dflash("report", "golden", "--panel", "loss").out
    assert "loss" in words and "50 rows, steps 1..50" in words


def test_types_survive_the_way_out(golden: None) -> None:
    sql = "select 'NaN'::double a, '-inf'::double b, null c, 9007199254740993::bigint d, true e, [1.5, 'NaN'::double] f"
    [row] = dflash("query", sql, "--format", "json").json()
    assert row == {"a": "NaN", "b": "-Infinity", "c": None, "d": 9007199254740993, "e": True, "f": [1.5, "NaN"]}
    assert dflash("query", sql).out.splitlines()[1] == 'NaN,-Infinity,,9007199254740993,true,"[1.5, ""NaN""]"'


@pytest.mark.parametrize("owner", [False, True])
def test_the_advice_to_name_a_parameter_can_be_followed(log: Path, owner: bool) -> None:
    assert dflash("ingest", str(log), "--run", "r").code == 0
    sql = "select count(*) as n from steps where step <= $last and extra->>'note' <> $note"
    with watching() if owner else nullcontext():
        assert "give it with -p last=..." in refused(dflash("query", sql), 2)
        said = dflash("query", sql, "-p", "last=5", "-p", "note=n3", "--format", "json")
        assert said.json() == [{"n": 4}], said.err
        sql = "select $a as a, $b as b, $c as c, $d as d, $e as e"
        words = ["a=null", 'b="7"', "c=7", "d=x = y", "e=NaN"]
        said = dflash("query", sql, *(word for text in words for word in ("-p", text)), "--format", "json")
        assert said.json() == [{"a": None, "b": "7", "c": 7, "d": "x = y", "e": "NaN"}]
        assert "has no parameter $x" in refused(dflash("query", "select 1", "-p", "x=1"), 2)
        for word in ("x", "=1", ""):
            assert "is no name=value" in refused(dflash("query", "select $x", "-p", word), 2)


@pytest.mark.parametrize(
    "value", ["[1, [2], null]", '{"a": {"b": [1]}}', "9" * 60, "1e400", "[" * 3000 + "]" * 3000, "a\x01"]
)
def test_no_value_of_a_parameter_is_a_traceback(golden: None, value: str) -> None:
    said = dflash("query", "select $x as x", "-p", f"x={value}")
    assert said.code == 0 or refused(said, 2)


def test_a_growing_log_is_taken_in_once(log: Path) -> None:
    dflash("ingest", str(log), "--run", "r")
    with log.open("a") as file:
        file.write('{"step": 51, "loss": 0.1}\nno json\n{"step": 52, "lo')
    said = dflash("ingest", str(log), "--run", "r")
    assert "r: 1 row, 1 rejected" in said.out
    assert f"{log}:53: " in said.err and "held back" in said.err
    assert dflash("query", "select count(*), count(distinct step) from steps").out.splitlines()[1] == "51,51"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("drop table records", "SELECT"),
        ("select 1; select 2", "2 statements"),
        ("select * from read_csv('/etc/passwd')", "read_csv"),
        ("with d as (delete from records returning *) select * from d", "DELETE"),
        ("select los from steps", "did you mean 'loss'? (column 8)"),
        ("selec 1", "selec"),
    ],
)
def test_a_query_that_is_not_allowed_is_one_line(golden: None, sql: str, words: str) -> None:
    assert words in refused(dflash("query", sql), 2)
    assert dflash("query", "select count(*) from records").out.splitlines()[1] == "51"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["report", "goldne"], "golden"),
        (["report", "golden", "--panel", "los"], "'loss'"),
        (["report", "golden", "--last", "0"], "at least 1 row"),
        (["report", "golden", "--last", "5", "--from", "3"], "one window"),
        (["report", "golden", "--from", "5", "--to", "3"], "ends before"),
        (["report", "golden", "--windows", "1..5", "late"], "'late' is no range of steps: write 3000..5000"),
        (["query", "select 1", "--format", "xml"], "csv"),
        (["stop", "golden", "--yes"], "no host runs it"),
        (["resume", "golden"], "no host runs it"),
        (["ingest", "/nowhere.jsonl"], "/nowhere.jsonl"),
        (["ingest", "--run", "A b", "/nowhere.jsonl"], "a-b"),
        (["frobnicate"], "frobnicate"),
        (["launch", "tiny", "--host", "locl"], "'local'"),
        (["launch", "tiny", "--set", "lrr=1"], "'lr'"),
        ([], "terminal"),
    ],
)
def test_wrong_words_are_one_line(golden: None, command: list[str], words: str) -> None:
    assert words in refused(dflash(*command), 2)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["runs"], 0),
        (["status", "golden"], 0),
        (["report", "golden"], 0),
        (["panels"], 0),
        (["check", "golden"], 0),
        (["checks"], 0),
        (["compare", "golden", "--reference", "story"], 0),
        (["logs", "golden", "--metrics"], 0),
        (["hosts", "check", "local"], 0),
        (["launch", "tiny", "--dry-run"], 0),
        (["launch-script", __file__, "--dry-run"], 0),
        (["resume", "golden"], 2),
        (["clone", "golden"], 2),
    ],
)
def test_a_command_loads_all_that_it_needs(golden: None, command: list[str], code: int) -> None:
    said = from_scratch(*command)
    assert said.code == code and "Traceback" not in said.err, said


def test_control_characters_in_a_log_are_shown_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "l.jsonl"
    file.write_text('{"step": 1, "loss": 1, "k\\u001b[31m": 2, "note": "a\\u001b]0;x\\u0007"}\n\x1b[2Jbad\n')
    said = dflash("ingest", str(file), "--run", "r")
    said2 = dflash("report", "r")
    said3 = dflash("query", "select extra->>'note' as n, line from records, rejects", "--format", "table")
    assert "\\x1b" in said3.out
    for text in (said.out, said.err, said2.out, said2.err, said3.out):
        assert "\x1b" not in text and "\x07" not in text


def test_a_reader_that_leaves_is_no_error(golden: None) -> None:
    command = f'{sys.executable} -m dflash_tui query "select * from range(300000)" | head -1'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "range\n", "")


def test_a_query_that_takes_too_long_ends_with_4(golden: None) -> None:
    sql = "select count(*) from range(10000000) a, range(10000000) b"
    assert "0.3 s" in refused(dflash("query", sql, "--timeout", "0.3"), 4)


def test_the_panels_are_listed_with_those_of_the_person(home: Path) -> None:
    mine = home / "config" / "panels" / "mine.sql"
    mine.parent.mkdir(parents=True)
    mine.write_text("-- My own question.\n--\n-- title: my question\n-- chart: table\nselect 1 as one;\n")
    words = dflash("panels").out
    assert "my question" in words and "vitals" in words and "grad_norm" in words


def test_the_owner_answers_while_it_collects(log: Path) -> None:
    with watching():
        dflash("ingest", str(log), "--run", "r")
        assert dflash("query", "select max(step) from steps").out.splitlines()[1] == "50"


def test_an_answer_through_the_owner_loads_nothing_heavy(log: Path) -> None:
    dflash("ingest", str(log), "--run", "r")
    program = (
        "import sys; from dflash_tui.cli import main\n"
        "sys.argv[1:] = ['query', 'select count(*) from steps']\n"
        "try: main()\n"
        "except SystemExit as e: assert e.code == 0\n"
        "heavy = {'duckdb', 'textual', 'asyncssh', 'torch', 'asyncio', 'rich', 'numpy', 'typer'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    with watching():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["count_star()", "50", "[]"], done.stderr

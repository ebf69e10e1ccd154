"""A person's own checks: found without a restart, guarded, and one that is wrong holds up no other."""

import re
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.store.base import Finding
from dflash_tui.store.check_files import load_checks, parse
from dflash_tui.store.database import Database

from .made_log import rows, write_log

FILE = Path("/checks/mine.sql")
MINE = """-- Is the loss ever above a limit?
--
-- title: high loss
-- order: 1
-- requires: loss
-- thresholds: limit = 5
-- next: look at it
select 'warning' as severity, format('{:,} rows above {:g}', count(*), $limit) as sentence,
  list(step order by step) as steps, {'n': count(*), 'max': max(loss)} as "values"
from steps where run = $run and loss > $limit having count(*) > 0
"""


def write(name: str, text: str) -> Path:
    file = paths.config_dir() / "checks" / f"{name}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def run(store: Database, tmp_path: Path) -> str:
    store.ingest("r", write_log(tmp_path / "log", rows(300)))
    return "r"


def named(store: Database, name: str) -> list[Finding]:
    return [finding for finding in store.check("r") if finding.check == name]


def test_a_new_check_appears_changes_and_goes_without_a_restart(store: Database, run: str) -> None:
    assert named(store, "mine") == []
    file = write("mine", MINE)
    [found] = named(store, "mine")
    assert (found.title, found.severity, found.next) == ("high loss", "warning", "look at it")
    assert found.sentence == f"{len(found.steps)} rows above 5" and found.steps[0] == 1
    assert found.values["n"] == len(found.steps) and 8 < found.values["max"] < 10
    write("mine", MINE.replace("limit = 5", "limit = 50"))
    assert named(store, "mine") == []
    file.unlink()
    assert "mine" not in {check.name for check in load_checks()}


def test_what_is_kept_is_what_would_be_found(store: Database, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", rows(300))
    store.ingest("r", log)
    write("mine", MINE.replace("-- next", "-- cache: run\n-- next"))
    [first] = named(store, "mine")
    assert store.check("r") == store.check("r")
    with log.open("a") as more:
        more.write('{"step": 301, "loss": 77.0}\n')
    store.ingest("r", log)
    [later] = named(store, "mine")
    assert later.steps == [*first.steps, 301] and later.values["max"] == 77.0
    write("mine", MINE.replace("-- next", "-- cache: run\n-- next").replace("limit = 5", "limit = 70"))
    assert named(store, "mine")[0].steps == [301]
    store.forget("r")
    store.ingest("r", write_log(tmp_path / "other", rows(300, seed=7)))
    assert named(store, "mine") == []


def test_a_persons_check_replaces_a_bundled_one(store: Database, run: str) -> None:
    write("unlogged", "select 'critical' as severity, 'mine' as sentence")
    assert [(one.severity, one.sentence, one.steps, one.values) for one in named(store, "unlogged")] == [
        ("critical", "mine", [], {})
    ]


@pytest.mark.parametrize(
    ("sql", "line", "says"),
    [
        (
            "-- help\n\nselect 'info' as severity,\n  los from steps",
            4,
            "there is no column 'los' here; did you mean 'loss'?",
        ),
        ("select 1; select 2", 1, "it may have one SELECT"),
        ("-- nothing", 1, "holds no SELECT"),
        ("delete from logged", 1, "only SELECT is allowed"),
        ("\nselect * from read_text('/etc/passwd')", 2, "read_text"),
        ("select $limt", 1, "unknown parameter $limt"),
        ("select 'bad' as severity, 'x' as sentence", 1, "a finding is severity (info, warning, critical)"),
        ("select 'info' as severity, null as sentence", 1, "sentence"),
        ("select 'info' as severity, 'x' as sentence, ['a'] as steps", 1, "steps"),
        ("-- title: a\n-- titel: b\nselect 1", 2, "unknown key 'titel': did you mean 'title'?"),
    ],
)
def test_a_check_that_is_wrong_says_file_and_line_and_the_others_go_on(
    store: Database, run: str, sql: str, line: int, says: str
) -> None:
    file = write("mine", sql)
    [found] = named(store, "mine")
    assert found.severity == "warning"
    assert found.sentence.startswith(f"{file}:{line}: ") and says in found.sentence, found.sentence
    assert "\n" not in found.sentence
    assert named(store, "unlogged")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("thresholds: limit", "write name = number"),
        ("thresholds: limit = many", "threshold 'many' is no number"),
        ("thresholds: limit = nan", "threshold 'nan' is no number"),
        ("thresholds: limit = 1, limit = 2", "threshold 'limit' is set twice"),
        ("order: first", "no whole number"),
        ("chart: line", "unknown key 'chart'"),
    ],
)
def test_a_mistake_in_a_header_says_file_and_line(line: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape("/checks/mine.sql:2: ")) as error:
        parse("mine", FILE, f"-- title: x\n-- {line}\nselect 1")
    assert says in str(error.value)


def test_what_a_check_says_is_strict_json(store: Database, run: str) -> None:
    values = "{'x': 'nan'::double, 'y': [1e999]} as \"values\""
    write("mine", f"-- title: \x1b[31mred\nselect 'info' as severity, 'a' || chr(27) as sentence, {values}")
    [found] = named(store, "mine")
    assert found.title == "\\x1b[31mred" and found.sentence == "a\x1b"
    assert found.values == {"x": "NaN", "y": ["Infinity"]}

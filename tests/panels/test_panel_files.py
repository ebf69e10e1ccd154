"""The header of a panel's file: what it may say, and errors that say file:line and the nearest right word."""

import json
import re
import string
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import Window
from dflash_tui.store.panel_files import CHARTS, Panel, load_panels, parse
from dflash_tui.store.sql_header import Requirement

BUNDLED = sorted(file.stem for file in (paths.bundled("sql") / "panels").glob("*.sql"))
FILE = Path("/panels/mine.sql")


def read(*lines: str) -> Panel:
    return parse("mine", FILE, "\n".join([*(f"-- {line}".rstrip() for line in lines), "select 1"]))


def write(name: str, text: str) -> Path:
    file = paths.config_dir() / "panels" / f"{name}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_panels_of_the_story_are_there() -> None:
    story = {"vitals", "dynamics", "loss", "grad_norm", "lr", "noise", "length_buckets", "batch", "throughput"}
    assert story | {"padding", "accuracy", "streak", "budget", "acceptance"} <= set(BUNDLED)
    assert {"grad_hist", "positions", "bucket_loss", "step_time", "health"} <= set(BUNDLED)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_panel_explains_itself(name: str) -> None:
    [panel] = [panel for panel in load_panels() if panel.name == name]
    assert panel.broken is None
    assert len(panel.help) > 40
    assert panel.title and panel.units is not None and panel.order < 1000
    assert panel.chart == "table" or panel.axes["y"]


def test_rows_that_people_see_are_in_an_order() -> None:
    """What no ORDER BY holds comes in another order on another day. Headlines and questions for one row need none."""
    sql = paths.bundled("sql")
    answers = [*(sql / "panels").glob("*.sql"), *(sql / "screens").glob("*.sql")]
    one_row = ("evaluated", "log_rejects_count", "progress", "start")
    with duckdb.connect() as connection:
        for file in answers:
            text = file.read_text()
            statement = connection.extract_statements(text)[-1].query
            [tree] = connection.execute("select json_serialize_sql(?)", [statement]).fetchone() or [""]
            kinds = [one["type"] for one in json.loads(tree)["statements"][0]["node"]["modifiers"]]
            assert "ORDER_MODIFIER" in kinds or file.stem in one_row, file


def test_a_header_says_everything() -> None:
    panel = read(
        "First line of help.",
        "batches: a line of help may wrap like this one.",
        "",
        "Second paragraph.",
        "",
        "title: my loss",
        "chart: band x=step y=p50,mean low=p10 high=p90 clip=outliers",
        "order: 12",
        "unit: nats",
        "units: step, nats, -",
        "scale: log",
        "better: lower",
        "requires: loss, tokens | avg_batch_size, evals.tau_linear_macro",
        "window: last 500",
    )
    assert panel.help.startswith("First line of help.\nbatches: a line") and panel.help.endswith("Second paragraph.")
    assert (panel.title, panel.chart, panel.order, panel.unit) == ("my loss", "band", 12, "nats")
    assert panel.axes == {"x": "step", "y": "p50,mean", "low": "p10", "high": "p90", "clip": "outliers"}
    assert panel.columns() == [("x", "step"), ("y", "p50"), ("y", "mean"), ("low", "p10"), ("high", "p90")]
    assert (panel.units, panel.scale, panel.better) == (("step", "nats", ""), "log", "lower")
    assert panel.requires == (
        Requirement("steps", ("loss",)),
        Requirement("steps", ("tokens", "avg_batch_size")),
        Requirement("evals", ("tau_linear_macro",)),
    )
    assert panel.window == Window.last_rows(500)


@pytest.mark.parametrize(
    "help_lines",
    [
        ["Note: look at the loss first."],
        ["See also: loss, grad_norm."],
        ["What it shows.", "", "Note: of late only."],
        ["note: of late only, as", "more words say."],
        ["order: the larger, the", "worse.", "", "title: as it stands on", "the frame."],
    ],
)
@pytest.mark.parametrize("gap", [[""], []], ids=["gap", "no gap"])
def test_help_may_begin_with_a_word_and_a_colon(help_lines: list[str], gap: list[str]) -> None:
    if gap or help_lines[-1][0].isupper():
        panel = read(*help_lines, *gap, "title: mine", "", "unit: nats")
        assert (panel.help, panel.title, panel.unit) == ("\n".join(help_lines), "mine", "nats")
    if not any(line.startswith("title") for line in help_lines):
        assert read(*help_lines, "", "Warning: no keys here.").help.startswith(help_lines[0])


def test_a_bare_select_is_a_panel() -> None:
    panel = parse("mine", FILE, "select 1 as one")
    assert (panel.title, panel.chart, panel.help, panel.window) == ("mine", "table", "", None)


@pytest.mark.parametrize(
    ("window", "meant"), [("run", Window()), ("last 2000", Window.last_rows(2000)), ("10..20", Window.between(10, 20))]
)
def test_windows(window: str, meant: Window) -> None:
    assert read(f"window: {window}").window == meant


@pytest.mark.parametrize(
    ("lines", "line", "says"),
    [
        (["Help.", "", "titel: x"], 3, "unknown key 'titel': did you mean 'title'?"),
        (["titel: x"], 1, "unknown key 'titel': did you mean 'title'?"),
        (["title: x", "Better: lower"], 2, "unknown key 'Better': did you mean 'better'?"),
        (["title: x", "some words"], 2, "'some words' is no 'key: value'"),
        (["title: x", "", "title: y"], 3, "'title' is set twice"),
        (["title:"], 1, "'title' has no value"),
        (["chart: lines x=step"], 1, "unknown chart 'lines': did you mean 'line'?"),
        (["chart: line z=step"], 1, "unknown option 'z' of chart 'line'"),
        (
            ["chart: band x=step y=p50 lowe=p10 high=p90"],
            1,
            "unknown option 'lowe' of chart 'band': did you mean 'low'?",
        ),
        (["chart: band x=step y=p50"], 1, "chart 'band' needs low=COLUMN and high=COLUMN"),
        (["chart: table x=step"], 1, "unknown option 'x' of chart 'table': it has none"),
        (["chart: line x y=p50"], 1, "option 'x' of chart 'line' names a column"),
        (["chart: line x=step y=p50 clip=all"], 1, "known: outliers"),
        (["order: first"], 1, "order 'first' is no whole number"),
        (["scale: logarithmic"], 1, "'logarithmic': known: linear, log"),
        (["better: low"], 1, "did you mean 'lower'?"),
        (["requires: loss,"], 1, "requires ''"),
        (["window: last 0"], 1, "a window holds at least 1 row"),
        (["window: 20..10"], 1, "the window ends before it begins"),
        (["window: newest"], 1, "write run, last N or A..B"),
    ],
)
def test_a_mistake_says_file_and_line(lines: list[str], line: int, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"/panels/mine.sql:{line}: ")) as error:
        read(*lines)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_written_in_a_file_cannot_reach_the_terminal() -> None:
    with pytest.raises(UsageError) as error:
        parse("mine", Path("/panels/\x1b[2J.sql"), "-- title: a\n-- \x1b]0;owned\x07\nselect 1")
    assert str(error.value).isprintable()
    assert parse("mine", FILE, "-- title: \x1b[31mred\nselect 1").title == "\\x1b[31mred"


WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=8)


@given(kind=st.sampled_from(sorted(CHARTS)), data=st.data())
def test_every_chart_takes_its_options_in_any_order(kind: str, data: st.DataObject) -> None:
    needed, more = CHARTS[kind]
    columns = [option for option in needed + more if option not in ("x_scale", "clip")]
    axes = {option: data.draw(WORDS) for option in data.draw(st.permutations(columns))}
    assert read("chart: " + " ".join([kind, *(f"{option}={name}" for option, name in axes.items())])).axes == axes


@given(st.text())
def test_any_text_is_a_panel_or_one_line_of_error(text: str) -> None:
    try:
        panel = parse("mine", FILE, text)
    except UsageError as e:
        assert re.match(r"/panels/mine\.sql:[0-9]+: ", str(e))
        assert str(e).isprintable()
    else:
        assert panel.sql == text


def test_a_persons_panel_appears_replaces_and_goes_without_a_restart() -> None:
    assert "mine" not in {panel.name for panel in load_panels()}
    file = write("mine", "-- title: first\nselect 1")
    assert {panel.name: panel.title for panel in load_panels()}["mine"] == "first"
    file.write_text("-- title: second\nselect 1")
    assert {panel.name: panel.title for panel in load_panels()}["mine"] == "second"
    write("loss", "-- title: my own\nselect 1")
    assert [panel.title for panel in load_panels() if panel.name == "loss"] == ["my own"]
    file.unlink()
    assert "mine" not in {panel.name for panel in load_panels()}


def test_order_then_name() -> None:
    write("zeta", "-- order: -5\nselect 1")
    write("alpha", "select 1")
    names = [panel.name for panel in load_panels()]
    assert names[0] == "zeta" and names[-1] == "alpha"
    assert names.index("vitals") < names.index("dynamics") < names.index("loss")


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"-- titel: x\nselect 1", "1: unknown key 'titel'"), (b"-- \xff\nselect 1", "not UTF-8 at byte 3")],
)
def test_a_file_that_cannot_be_read_stands_in_as_broken(content: bytes, says: str) -> None:
    write("broken", "").write_bytes(content)
    panels = {panel.name: panel for panel in load_panels()}
    assert says in (panels["broken"].broken or "")
    assert not any(panel.broken for panel in panels.values() if panel.name != "broken")


def test_a_folder_named_like_a_panel_is_broken_and_hidden_files_are_left_alone() -> None:
    write("x", "select 1")
    (paths.config_dir() / "panels" / "folder.sql").mkdir()
    write(".#x", "what an editor leaves behind")
    panels = {panel.name: panel for panel in load_panels()}
    assert "cannot be read" in (panels["folder"].broken or "")
    assert ".#x" not in panels

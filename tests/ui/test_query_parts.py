"""What the Query screen is made of, without a screen: SQL as text, completion, rows that are kept, charts, panels."""

import math
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.charts import draw
from dflash_tui.errors import UsageError
from dflash_tui.runs import Window
from dflash_tui.store import own_panel
from dflash_tui.store.base import PanelResult
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.parameters import NAMES, parameters_of
from dflash_tui.ui import query_chart, sql_text
from dflash_tui.ui.asked_query import AskedQuery
from dflash_tui.ui.catalog import Catalog, read_catalog
from dflash_tui.ui.completion import complete
from dflash_tui.ui.packed_rows import PackedRows
from dflash_tui.ui.query_history import MOST, QueryHistory
from dflash_tui.ui.query_keeping import text_of_panel, window_in
from dflash_tui.ui.result_cells import shown

from .scripted_seat import ScriptedStore, make_run

TWO = "-- a; b\nselect 'x;''y', \"q;\", $$;$$ from steps; \n select 2;\n"


@pytest.mark.parametrize(
    ("place", "begins"), [(0, "-- a"), (30, "-- a"), (TWO.index(";", 40), "-- a"), (len(TWO) - 4, "sel"), (999, "sel")]
)
def test_the_statement_under_the_cursor(place: int, begins: str) -> None:
    found = sql_text.statement_at(TWO, place)
    assert found is not None
    assert found.text.startswith(begins)
    assert TWO[found.start :].startswith(found.text)


@pytest.mark.parametrize("text", ["", " \n", ";;", "-- only a comment", "/* never closed"])
def test_what_is_no_statement(text: str) -> None:
    assert sql_text.statement_at(text, 0) is None


SQL = st.text(alphabet="ab'\"$-/*; \n1.;", max_size=60)


@given(SQL)
def test_every_token_is_where_it_says_and_nothing_but_blanks_is_between(text: str) -> None:
    end = 0
    for token in sql_text.tokens(text):
        assert text[token.start : token.stop] == token.text
        assert not text[end : token.start].strip()
        end = token.stop
    assert not text[end:].strip()


@given(SQL, st.integers(0, 60), st.integers(1, 50))
def test_any_text_has_a_place_that_can_be_pointed_at(text: str, place: int, width: int) -> None:
    line, carets = sql_text.pointed_at(text, min(place, len(text)), width)
    assert carets.strip("^ ") == ""
    assert "^" in carets
    assert len(line) <= width


def test_the_carets_stand_under_the_word_also_behind_wide_and_hidden_characters() -> None:
    text = "select 1,\n  '宽\x1b' as a, losss from steps"
    line, carets = sql_text.pointed_at(text, text.index("losss"), 80)
    assert line == "  '宽\\x1b' as a, losss from steps"
    assert carets == " " * 17 + "^^^^^"
    line, carets = sql_text.pointed_at(text, text.index("losss"), 20)
    assert line[carets.index("^") :].startswith("loss")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    store: Any = ScriptedStore([make_run("v5-hard"), make_run("v4")])
    return read_catalog(store)


@pytest.mark.parametrize(
    ("before", "begun", "first"),
    [
        ("select grad", "grad", ["grad_norm", "grad_clipped"]),
        ("select * from st", "st", ["steps"]),
        ("select s.gr", "gr", ["grad_norm", "grad_clipped"]),
        ("select quantile_c", "quantile_c", ["quantile_cont("]),
        ("select 1 from steps where run = 'v", "v", ["v5-hard", "v4"]),
        ("select $l", "$l", ["$last"]),
        ("sele", "sele", ["select"]),
        ("select loss", "loss", ["loss_ce", "loss_kl"]),
        ("-- grad", "", []),
        ("select 'grad'", "", []),
        ("select 12", "", []),
        ("", "", []),
    ],
)
def test_what_may_come_next(before: str, begun: str, first: list[str], catalog: Catalog) -> None:
    found = complete(before, " from steps s" if "s." in before else "", catalog, ["run", "last"])
    assert found.begun == begun
    assert [choice.text for choice in found.choices][: len(first)] == first
    assert bool(found.choices) is bool(first)


ROWS = [(i, i / 3, f"row {i}", None, float("nan"), 2**70, b"\x00", [1.5, None], {"a": 1}) for i in range(1000)]


def test_packed_rows_come_out_as_they_went_in() -> None:
    rows = PackedRows()
    assert rows.add(ROWS[:700])
    assert rows.add(ROWS[700:])
    assert len(rows) == 1000
    assert str(list(rows)) == str(ROWS)
    assert str(rows[317]) == str(ROWS[317])
    assert str(rows[699:702]) == str(ROWS[699:702])
    assert str(rows[-1:]) == str(ROWS[-1:])


def test_no_more_rows_are_kept_than_fit_and_that_is_told() -> None:
    rows = PackedRows(most_rows=500)
    assert not rows.add(ROWS)
    assert len(rows) == 500
    assert PackedRows(most_rows=1000).add(ROWS)
    rows = PackedRows(most_bytes=10_000)
    assert not rows.add(ROWS)
    assert 0 < len(rows) < 1000


@pytest.mark.parametrize(
    ("kind", "cell", "text", "look"),
    [
        ("DOUBLE", 8e-06, "8e-06", "number"),
        ("BIGINT", 22_698, "22,698", "number"),
        ("DOUBLE", float("nan"), "NaN", "odd"),
        ("DOUBLE", -math.inf, "-Infinity", "odd"),
        ("DOUBLE", None, "NULL", "quiet"),
        ("VARCHAR", "NULL", '"NULL"', "text"),
        ("VARCHAR", "", '""', "quiet"),
        ("VARCHAR", "[red]宽\x1b[31m\nb", "[red]宽\\x1b[31m↵b", "text"),
        ("BOOLEAN", True, "true", "text"),
        ("DOUBLE[]", [1.5, None], "[1.5, null]", "text"),
        ("BLOB", b"a\x00", "a\\x00", "text"),
        ("DECIMAL(38,2)", "12.30", "12.30", "number"),
    ],
)
def test_a_cell_is_shown_short_and_on_one_line(kind: str, cell: Any, text: str, look: str) -> None:
    assert shown(kind, cell) == (text, look)


def test_history_is_walked_kept_for_the_next_session_and_for_nobody_else() -> None:
    history = QueryHistory()
    for query in ("select 1", "select 2", "select 2", "select\n3"):
        history.add(query)
    assert history.step(1, "draft") is None
    assert [history.step(-1, "draft") for _ in range(4)] == ["select\n3", "select 2", "select 1", None]
    assert [history.step(1, "-") for _ in range(3)] == ["select 2", "select\n3", "draft"]
    file = paths.data_dir() / "query_history.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open("ab") as more:
        more.write(b"half a li")
    assert QueryHistory().queries == ["select 1", "select 2", "select\n3"]


def test_a_long_history_is_cut() -> None:
    history = QueryHistory()
    for number in range(3 * MOST):
        history.add(f"select {number}, '{'x' * 1000}'")
    assert len(QueryHistory().queries) == MOST
    assert (paths.data_dir() / "query_history.jsonl").stat().st_size < 4 << 20
    assert QueryHistory().queries[-1] == history.queries[-1]


COLUMNS = ["step", "p10", "loss", "p90", "run", "tok_per_sec"]
TYPES = ["BIGINT", "DOUBLE", "DOUBLE", "DOUBLE", "VARCHAR", "DOUBLE"]
SERIES = [(step, 0.5, 1 + 1 / (step + 1), 2.0, "v5", 26_146.0) for step in range(300)]


def drawn(view: Any, chosen: int = 0, rows: Any = SERIES, columns: Any = COLUMNS, types: Any = TYPES) -> Any:
    return query_chart.chart_of(view, columns, types, rows, chosen, 50)


def test_axes_are_guessed_from_names_and_sizes_and_the_cursor_chooses() -> None:
    assert drawn("line").axes == {"x": "step", "y": "loss", "low": "p10", "high": "p90"}
    assert drawn("line").chart == "band"
    assert drawn("line", 5).axes == {"x": "step", "y": "tok_per_sec"}
    assert drawn("bars", 2).axes == {"x": "run", "y": "loss"}
    assert drawn("hist", 2).headline == "loss · n 300"
    assert drawn("hist", 4, columns=["a"], types=["VARCHAR"], rows=[("x",)]) == (
        "no column of this answer is one of numbers"
    )
    assert "first, or one called step" in drawn(
        "line", 1, [("v5", 3, 9)], ["run", "n", "last"], ["VARCHAR", *TYPES[:2]]
    )
    assert "two columns of numbers" in drawn("line", columns=["a"], types=["DOUBLE"], rows=[(1.0,)])


def test_names_with_commas_and_names_that_come_twice_are_told_apart() -> None:
    names, types = ["step", "round(loss, 2)", "step"], ["BIGINT", "DOUBLE", "DOUBLE"]
    found = drawn("line", 1, [(1, 2.0, 7), (2, 3.0, 9)], names, types)
    canvas = draw(found.chart, found.columns, found.rows, found.axes, width=40, height=10)
    assert not canvas.tally.num_without_x
    assert found.rows == [[1.0, 2.0], [2.0, 3.0]]
    assert query_chart.axes_of("line", names, types, [(1, 2.0, 7), (2, 3.0, 9)], 1) == "table"


@pytest.mark.parametrize("view", ["line", "bars", "hist"])
@pytest.mark.parametrize("cell", [None, float("nan"), math.inf, -3, 2**80, "1e400", "text"])
def test_any_answer_is_drawn_or_a_sentence(view: Any, cell: Any) -> None:
    found = drawn(view, 1, [(1, cell), (2, cell)], ["step", "y"], ["BIGINT", "DOUBLE"])
    if isinstance(found, PanelResult):
        draw(found.chart, found.columns, found.rows, found.axes, width=40, height=10)
    else:
        assert found


def test_values_too_far_apart_for_a_histogram_are_a_sentence() -> None:
    said = drawn("hist", 0, [(-1e308,), (1e308,)], ["v"], ["DOUBLE"])
    assert said == "v reaches from -1e+308 to 1e+308: too far for a histogram"


def test_a_chart_of_many_rows_loses_no_peak_and_gets_few_rows() -> None:
    rows = [(step, math.sin(step)) for step in range(20_000)]
    rows[11_204] = (11_204, 41.5)
    found = drawn("line", 1, rows, ["step", "y"], ["BIGINT", "DOUBLE"])
    assert len(found.rows) <= 3 * 50
    assert [11_204.0, 41.5] in found.rows


def test_an_answer_that_is_asked_again_of_another_owner_is_not_there_twice() -> None:
    store: Any = ScriptedStore(answer=(COLUMNS, TYPES, SERIES))
    asked = AskedQuery(sql_text.Statement(0, "select $run"), lambda store: {"run": "v5", "first": 1}, lambda: 0.0)
    for _ in range(2):
        asked.read(store)
        assert len(asked.rows) == len(SERIES)
    assert store.queries[0] == ("select $run", {"run": "v5"})


def test_parameters_are_those_of_the_window_and_of_two_stretches() -> None:
    store: Any = ScriptedStore()
    two = (Window.between(3000, 5000), Window.between(20_000, 23_000))
    found = parameters_of(store, "v5", Window.last_rows(500), Window(), stretches=two)
    assert (found["first"], found["last"], found["last_n"]) == (None, None, 500), "of a panel of the whole run"
    assert [found[name] for name in ("a_first", "a_last", "b_first", "b_last")] == [3000, 5000, 20_000, 23_000]
    assert tuple(found) == NAMES
    assert parameters_of(store, "v5", Window.between(7, 9))["recent"] == 0


def text_of(sql: str, view: Any = "table", name: str = "my-panel") -> str:
    statement = sql_text.statement_at(sql, 0)
    assert statement is not None
    asked = AskedQuery(statement, lambda store: {}, lambda: 0.0)
    asked.columns, asked.types = COLUMNS, TYPES
    asked.rows.add(SERIES)
    asked.end()
    return text_of_panel(name, sql, statement, asked, view, 0)


def test_a_query_becomes_a_panel_that_is_read_as_one() -> None:
    own_panel.save_panel("my-panel", text_of("-- newest first\n-- and: no key\nselect 1 as step", "line"))
    own_panel.save_panel("bars", text_of("select 1", "bars"))
    own_panel.save_panel("plain", text_of("select 1", "hist"))
    found = {panel.name: panel for panel in load_panels()}
    assert found["my-panel"].broken is None
    assert found["my-panel"].title == "my panel"
    assert found["my-panel"].axes == {"x": "step", "y": "loss", "low": "p10", "high": "p90"}
    assert found["bars"].chart == "bars"
    assert found["plain"].chart == "table"


def test_the_panel_that_was_edited_keeps_its_header() -> None:
    text = (paths.bundled("sql") / "panels" / "loss.sql").read_text()
    assert text_of(text, name="loss").strip("\n ;") == text.strip("\n ;")
    other = text_of(text, name="loss-of-mine")
    assert "-- title: loss of mine\n-- chart: band" in other
    assert len(other.splitlines()) == len(text.splitlines())
    assert window_in("-- A.\n--\n-- window: last 2000\nselect 1") == Window.last_rows(2000)
    assert window_in("select 1") is None


@pytest.mark.parametrize("name", ["", "Loss", "../loss", "a b", "x" * 60])
def test_a_name_that_is_no_file_of_ours_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a panel"):
        own_panel.place_of(name)


def test_a_wrong_header_is_told_and_a_folder_that_cannot_be_written(home: Path) -> None:
    with pytest.raises(UsageError, match="unknown key 'colour'"):
        text_of("-- A.\n--\n-- title: x\n-- colour: red\nselect 1")
    (home / "config").mkdir(parents=True)
    (home / "config" / "panels").write_text("a file")
    with pytest.raises(UsageError, match="cannot be written"):
        own_panel.save_panel("mine", "select 1")

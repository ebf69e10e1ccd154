"""What is kept of a query: rows on the clipboard, its answer in a file, itself as a panel. Blocking, for a thread."""

from collections.abc import Callable
from pathlib import Path

from dflash_tui.errors import UsageError
from dflash_tui.output.delivery import Delivered
from dflash_tui.output.writing import write_answer
from dflash_tui.runs import Window
from dflash_tui.store.base import Cancellable, PanelResult, Store
from dflash_tui.store.own_panel import panel_text, place_of, put_back, save_panel
from dflash_tui.store.panel_files import has_header, parse
from dflash_tui.ui.asked_query import AskedQuery
from dflash_tui.ui.panel_text import as_lines
from dflash_tui.ui.query_chart import View, axes_of
from dflash_tui.ui.query_subject import QuerySubject
from dflash_tui.ui.result_cells import whole
from dflash_tui.ui.sql_text import Statement

MOST_COPIED = 10_000
_NOWHERE = Path("the query")


def window_in(text: str) -> Window | None:
    """The window that a panel's text sets for itself."""
    try:
        return parse("query", _NOWHERE, text).window
    except UsageError:
        return None


def rows_as_tsv(asked: AskedQuery) -> str:
    """The first of them, whole cells, under the names of the columns."""
    rows = [list(map(whole, asked.types, row)) for row in asked.rows[:MOST_COPIED]]
    return as_lines([asked.columns, *rows])


def write(asked: AskedQuery, file: Path, began: Callable[[Cancellable], None], store: Store) -> Delivered:
    """The query's whole answer, asked anew: what is shown may be a part of it. Raises DflashError."""
    return write_answer(store, asked.statement.text, asked.bound(store), file, began)


def text_of_panel(
    name: str, text: str, statement: Statement | None, asked: AskedQuery | None, view: View, column: int
) -> str:
    """The file of a panel called `name`: all of `text` if it is a panel's already, else the statement in it, with the
    chart that its answer was looked at as. UsageError for what can be no panel."""
    if has_header(_NOWHERE, text):
        return panel_text(name, text, "")
    if statement is None:
        raise UsageError("there is no query to save: write one")
    is_answered = asked is not None and asked.statement.text == statement.text and not asked.is_running
    chart = axes_of(view, asked.columns, asked.types, asked.rows[:1000], column) if asked and is_answered else "table"
    return panel_text(name, statement.text, chart)


def save(name: str, text: str, subject: QuerySubject, store: Store) -> tuple[Path, PanelResult | None]:
    """Write the file, and ask the panel of the run, if there is one, how it does: one that fails is taken back.

    Raises DflashError.
    """
    file = place_of(name)
    before = file.read_bytes() if file.exists() else None
    save_panel(name, text)
    found = store.report(subject.run, [name], subject.window, 240) if subject.run else []
    if found and found[0].state == "failed":
        put_back(name, before)
        raise UsageError(f"the panel {name} is not saved, it would fail in every report: {found[0].why}")
    return file, found[0] if found else None

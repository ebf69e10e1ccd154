"""The Query screen: an answer as a table and as a chart, an error, words to complete with."""

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from textual.pilot import Pilot

from dflash_tui.errors import QueryError
from dflash_tui.ui.app import DflashApp

from ..cockpit import make_app, sees, types
from ..pictures import DARK, LARGE, LIGHT, NO_COLOUR, SMALL, Scene
from ..scripted_seat import make_run

RUNS = [make_run("v5-hardCE-g7-splitfc"), make_run("v5-g10", step=3104, age_s=245.0)]
SQL = """-- How the loss falls, by a thousand steps.
select step // 1000 * 1000 as step, quantile_cont(loss, 0.1) as p10, median(loss) as p50,
  quantile_cont(loss, 0.9) as p90, max(grad_norm) as "max", any_value(note) as note
from steps
where run = $run and loss < 1e3 and note <> 'warm-up'
group by 1 order by 1"""
NOTES = ("clean", None, "", "[red]宽\x1b[31m", "two\nlines")
COLUMNS = ["step", "p10", "p50", "p90", "max", "note"]
TYPES = ["BIGINT", "DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE", "VARCHAR"]
ROWS = [
    (1000 * k, m - 0.2, m, m + 0.9, (math.nan if k == 3 else 41.5 if k == 11 else 0.4 / (k + 1)), NOTES[k % 5])
    for k in range(200)
    for m in [0.9 + 1.9 * math.exp(-k / 6)]
]
ERROR = QueryError("there is no column 'note' here; did you mean 'noise_std'?", SQL.index("note)") + 1)


def answering(answer: Any) -> Callable[[], AbstractContextManager[DflashApp]]:
    def open_app() -> AbstractContextManager[DflashApp]:
        app = make_app(RUNS)
        app.seat.store.answer = answer  # type: ignore[attr-defined]
        return nullcontext(app)

    return open_app


def asking(*keys: str, until: str, typed: str = "") -> Callable[[Pilot[None]], Awaitable[None]]:
    async def play(pilot: Pilot[None]) -> None:
        await sees(pilot, "0.913")
        await pilot.press("4")
        await sees(pilot, "$run = v5-hardCE-g7-splitfc")
        pilot.app.screen.query_one("#sql").write(SQL)  # type: ignore[attr-defined]
        await pilot.press("ctrl+r")
        await types(pilot, typed)
        await pilot.press(*keys)
        await sees(pilot, until)

    return play


ROWS_OF_NOTES = answering((COLUMNS, TYPES, ROWS))
TO_A_NAN = ("escape", "j", "j", "j", "l", "l", "l", "l")
COMPLETING = asking("down", typed=" desc, gr", until="grad_clipped")

SCENES = (
    Scene("query", ROWS_OF_NOTES, asking(*TO_A_NAN, until="max = NaN")),
    Scene("query-chart", ROWS_OF_NOTES, asking("f8", until="p50 over step"), only=((LARGE, LIGHT),)),
    Scene("query-error", answering(ERROR), asking(until="^^^^"), only=((SMALL, DARK),)),
    Scene("query-completion", ROWS_OF_NOTES, COMPLETING, only=((LARGE, NO_COLOUR),)),
)

"""The whole answer of a query into a file, as `query --output FILE` writes it, for who asks from within a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dflash_tui.output.delivery import Delivered, deliver
from dflash_tui.output.formats import format_of, pieces_of
from dflash_tui.output.sink import file_sink, replacing
from dflash_tui.store.base import Cancellable, Store, StoreOptions


def write_answer(
    store: Store,
    sql: str,
    params: dict[str, Any],
    file: Path,
    began: Callable[[Cancellable], None],
) -> Delivered:
    """Written beside `file` and renamed in the end; `began` is given what cancels it. Blocking; raises DflashError."""
    form = format_of(file)
    if form == "parquet":
        from dflash_tui.store.parquet import write_parquet

        with replacing(file) as (place, _):
            done = write_parquet(sql, params, None, place, None, _say_nothing, StoreOptions(), began)
            return Delivered(done.num_rows, done.is_cut, place.stat().st_size, None)
    query = store.running_query()
    began(query)
    with file_sink(file) as sink, query.start(sql, params, None) as answer:
        return deliver(answer, pieces_of(form, width=None, tell=_say_nothing), None, sink)


def _say_nothing(sentence: str) -> None:
    pass

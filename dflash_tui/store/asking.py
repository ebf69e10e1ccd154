"""One query, answered by whoever can: the owner, else this process, which then reads the file itself.

What an answer of the owner's does not need (duckdb, asyncio, what else can be asked) is imported when there is none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dflash_tui.store.answer import Answer
from dflash_tui.store.exchange import OwnerGoneError, query_owner

if TYPE_CHECKING:
    from dflash_tui.store.base import StoreOptions


@contextmanager
def answered(
    sql: str,
    params: dict[str, Any],
    timeout_s: float | None,
    notice: Callable[[str], None],
    options: "Callable[[], StoreOptions]",
) -> Iterator[tuple[Answer, str]]:
    """The answer to one read-only statement, and who gives it, "owner" or "direct". Errors as of `Store.query`."""
    found: Answer | None
    try:
        found, by = query_owner(sql, params, timeout_s).begun(), "owner"
    except OwnerGoneError:
        from dflash_tui.store.direct import query_file

        found, by = query_file(sql, params, timeout_s), "direct"
    if found:
        with found as answer:
            yield answer, by
        return
    from dflash_tui.store.access import reader
    from dflash_tui.store.client import StoreClient

    with reader(notice, options()) as store, store.query(sql, params, timeout_s=timeout_s) as answer:
        yield answer, "owner" if isinstance(store, StoreClient) else "direct"

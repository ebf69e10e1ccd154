"""One query, answered by whoever can: the owner, else this process, which then reads the file itself.

What an answer of the owner's does not need (duckdb, asyncio, what else can be asked) is imported when there is none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dflash_tui.errors import StoreBusyError
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
    busy: StoreBusyError | None = None
    try:
        answer = query_owner(sql, params, timeout_s).begun()
    except OwnerGoneError:
        pass
    except StoreBusyError as e:
        # An owner that cannot have the file, as others read it, is not in the way of who reads as well.
        busy = e
    else:
        with answer:
            yield answer, "owner"
        return
    from dflash_tui.store.interrupts import interruptible

    with interruptible(), _answered_directly(sql, params, timeout_s, notice, options, busy) as found:
        yield found


@contextmanager
def _answered_directly(
    sql: str,
    params: dict[str, Any],
    timeout_s: float | None,
    notice: Callable[[str], None],
    options: "Callable[[], StoreOptions]",
    busy: StoreBusyError | None,
) -> Iterator[tuple[Answer, str]]:
    from dflash_tui.store.direct import open_to_ask
    from dflash_tui.store.interrupts import ctrl_c_cancels

    query = open_to_ask(is_alone=busy is None)
    if query:
        with ctrl_c_cancels(query.cancel), query.start(sql, params, timeout_s) as answer:
            yield answer, "direct"
        return
    if busy:
        raise busy
    from dflash_tui.store.access import reader
    from dflash_tui.store.database import Database

    with reader(notice, options()) as store:
        if isinstance(store, Database):
            query = store.running_query()
            with ctrl_c_cancels(query.cancel), query.start(sql, params, timeout_s) as answer:
                yield answer, "direct"
        else:
            with store.query(sql, params, timeout_s=timeout_s) as answer:
                yield answer, "owner"

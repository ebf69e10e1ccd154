"""What every command may use: a line of talk, a seat at the store.

stderr belongs to this module. What a command prints on stdout is its own. `query` loads this: no typer here.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dflash_tui.runs import Run
    from dflash_tui.store.base import StoreOptions
    from dflash_tui.watch import Session

T = TypeVar("T")


def say(words: str) -> None:
    """One line of talk."""
    from dflash_tui.text import visible

    print(visible(words, keep="\n"), file=sys.stderr)


def ring() -> None:
    """The terminal's bell, if there is one."""
    if sys.stderr is not None and sys.stderr.isatty():
        print("\a", end="", file=sys.stderr, flush=True)


def has_terminal() -> bool:
    """Whether a person sits at all three streams; the session draws on stderr."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def store_options() -> "StoreOptions":
    """What config.toml says of the store."""
    from dflash_tui import config
    from dflash_tui.store.base import StoreOptions

    read = config.load()
    return StoreOptions(read.aliases, read.panels.length_edges, read.checks.thresholds, read.checks.baseline)


def in_session(work: "Callable[[Session], Awaitable[T]]") -> T:
    """Run `work` with a seat at the store, the owner's if nobody else has it."""
    from dflash_tui import config
    from dflash_tui.watch import Session

    async def sit() -> T:
        session = Session(config.load(), lambda run_id: None)
        await session.open()
        try:
            for notice in session.notices:
                say(notice)
            return await work(session)
        finally:
            await session.close()

    return in_person(sit)


def in_person(work: "Callable[[], Coroutine[Any, Any, T]]") -> T:
    """Run `work`, which may ask whoever sits at the terminal."""
    import asyncio

    from dflash_tui.commands.person import TerminalPerson, is_there
    from dflash_tui.hosts.person import introduce

    introduce(TerminalPerson() if is_there() else None)
    return asyncio.run(work())


async def find(session: "Session", name: str) -> "Run":
    found, notice = await session.ask(lambda store: store.find(name))
    if notice:
        say(notice)
    return found

"""Where to go in a log: to words, to the next sign of trouble, to a step. Asks in threads, moves nothing."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from dflash_tui.store.log_notes import ask_line_of_step, ask_trouble
from dflash_tui.store.log_words import Words
from dflash_tui.store.transcript import Layout, Line
from dflash_tui.ui.seat import Seat

_MOST_DIGITS = 18


class Find(NamedTuple):
    """A row to go to, if there is one, and what is to be said of it."""

    row: int | None
    said: str = ""


async def find_words(layout: Layout, row: int, words: Words, by: int, name: str, is_wanted: Callable[[], bool]) -> Find:
    """The next line with `words`, beginning anew at the other end if need be."""
    search = partial(layout.search, words=words, by=by, is_wanted=is_wanted)
    found = await asyncio.to_thread(search, row)
    if found is not None or not is_wanted():
        return Find(found)
    found = await asyncio.to_thread(search, -1 if by > 0 else layout.num_rows)
    if found is None:
        return Find(None, f"no line here has {name}")
    return Find(found, "there is no other" if found == row else f"on from the {'first' if by > 0 else 'last'} line")


async def find_trouble(seat: Seat, run_id: str, layout: Layout, line: Line, by: int) -> Find:
    """The next line of the log that the tables have something to say of."""
    found = await seat.ask(partial(ask_trouble, run_id, line.part, line.line_no, by))
    if found is None:
        return Find(None, f"no {'further' if by > 0 else 'earlier'} reject, warning or NaN")
    return Find(layout.row_of(*found))


async def find_place(seat: Seat, run_id: str, layout: Layout, part: int, words: str, *, has_steps: bool) -> Find:
    """What a person typed: 1200 is a step where the lines have steps, #1200 a line."""
    digits = words.lstrip("#").replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal()):
        return Find(None, f"{words!r} is no step: write 1200, or #1200 for a line")
    # Python reads no number of more than 4300 digits.
    number = int(digits) if len(digits) <= _MOST_DIGITS else int("9" * _MOST_DIGITS)
    if words.startswith("#") or not has_steps:
        return Find(layout.row_of(part, number))
    found = await seat.ask(partial(ask_line_of_step, run_id, number))
    if found is None:
        return Find(None, f"no step {number:,} or later was logged yet")
    generation, line_no, step = found
    said = "" if step == number else f"there is no step {number:,}: the next one is {step:,}"
    return Find(layout.row_of(generation, line_no), said)

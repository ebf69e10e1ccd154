"""Driving the session in a test: open it over a scripted seat, press keys, read what a person would see."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual import events
from textual.app import App
from textual.pilot import Pilot

from dflash_tui.runs import Run
from dflash_tui.ui.app import DflashApp

from .scripted_seat import ScriptedSeat

FROZEN_S = 1000.0


def make_app(runs: Sequence[Run], run_id: str | None = None) -> DflashApp:
    """The session over a scripted seat, its clock standing still; the seat is `app.seat`."""
    return DflashApp(lambda advanced: ScriptedSeat(list(runs), advanced), run_id, lambda: FROZEN_S)


@asynccontextmanager
async def cockpit(
    runs: Sequence[Run], size: tuple[int, int] = (120, 40), run_id: str | None = None
) -> AsyncIterator[tuple[Pilot[None], Any]]:
    """The session, open and drawn, as (pilot, seat)."""
    app = make_app(runs, run_id)
    async with app.run_test(size=size, notifications=True) as pilot:
        await sees(pilot, "loss" if run_id else "Runs")
        yield pilot, app.seat


def screen_lines(app: App[Any]) -> list[str]:
    """The screen as lines of text, then those of each dialog over it."""
    # An exported SVG would say the same by public means, at 100 ms a look.
    return [strip.text for screen in app.screen_stack for strip in screen._compositor.render_strips()]


def screen_text(app: App[Any]) -> str:
    return "\n".join(screen_lines(app))


async def until(pilot: Pilot[None], condition: Callable[[], bool], what: str, patience_s: float = 30.0) -> None:
    """Let the app work until `condition` holds; fails with the screen's text if it never does."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"never: {what}\n{screen_text(pilot.app)}")
        await pilot.pause(0.03)


async def sees(pilot: Pilot[None], *words: str) -> None:
    """Wait until every one of `words` stands on the screen."""
    for word in words:
        await until(pilot, lambda word=word: word in screen_text(pilot.app), f"{word!r} on the screen")


async def sees_no(pilot: Pilot[None], *words: str) -> None:
    """Wait until none of `words` stands on the screen."""
    for word in words:
        await until(pilot, lambda word=word: word not in screen_text(pilot.app), f"{word!r} gone from the screen")


async def types(pilot: Pilot[None], text: str) -> None:
    """Type as fast as a paste would: one pause for all of it."""
    for char in text:
        pilot.app.post_message(events.Key("space" if char == " " else char, char))
    await pilot.pause()

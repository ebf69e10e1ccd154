"""Keys that come all at once, as from a paste or over a slow line: what one of them opens has those behind it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import TextArea

from dflash_tui.store.database import Database
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.stop_screen import StopScreen

from .cockpit import cockpit, make_app, sees, until
from .logged_run import logged_store
from .scripted_seat import make_run

RUNS = [make_run("one"), make_run("two"), make_run("done", state="finished")]


@pytest.fixture
def logged(home: Path) -> Iterator[Database]:
    with logged_store() as store:
        yield store


def burst(pilot: Pilot[None], *keys: str) -> None:
    """All at once, as the driver hands on what one read from the terminal held; a word that is no key's is typed."""
    for key in keys:
        names = [key] if key in NAMED or "+" in key else list(key)
        for name in names:
            pilot.app.post_message(events.Key(CHARS.get(name, name), name if len(name) == 1 else None))


NAMED = ("enter", "escape", "tab", "end", "down")
CHARS = {"/": "slash", "=": "equals_sign", ":": "colon", "&": "ampersand", " ": "space", ".": "full_stop", "-": "minus"}


def value(pilot: Pilot[None], field: str) -> str:
    found = pilot.app.screen.query(field)
    if not found:
        return "no such field"
    widget: Any = found.first()
    return str(widget.text if isinstance(widget, TextArea) else widget.value)


async def has(pilot: Pilot[None], field: str, text: str) -> None:
    await until(pilot, lambda: text in value(pilot, field), f"{text!r} in {field}")


async def test_a_prompt_or_form_has_the_keys_typed_behind_the_one_that_opens_it() -> None:
    async with cockpit(RUNS) as (pilot, seat):
        await sees(pilot, "done")
        burst(pilot, "/", "X", "enter")
        await has(pilot, "#filter", "X")
        burst(pilot, "escape", "/", "name=one")
        await has(pilot, "#filter", "name=one")
        burst(pilot, "enter", "c", "lr=0.1", "tab", "tab", "quxt")
        await has(pilot, "#env-file", "quxt")
        assert value(pilot, "#settings") == "lr=0.1"
        burst(pilot, "shift+tab", "0", "shift+tab", "shift+tab", "second")
        await has(pilot, "#name", "second")
        burst(pilot, "escape", "n", "enter", "end", "enter", "q.toml", "tab", "tab", "Xn")
        await has(pilot, "#name", "Xn")
        assert value(pilot, "#path") == "q.toml"
        burst(pilot, "escape", "4", "X = q")
        await has(pilot, "#sql", "X = q")
        assert not [what for what, _ in seat.said if what != "focus"] and pilot.app.is_running


async def test_a_query_of_a_panel_a_dialog_and_the_palette_too() -> None:
    async with cockpit(RUNS, run_id="one") as (pilot, seat):
        burst(pilot, "w", "last 7", "enter")
        await sees(pilot, "last 7")
        await until(pilot, lambda: isinstance(pilot.app.focused, Panel), "a panel in focus")
        seat.store.answer = ["n"], ["BIGINT"], [[1]]
        burst(pilot, "e", "e", "--X q")
        await has(pilot, "#sql", "--X q")
        assert "-- title:" in value(pilot, "#sql"), "the panel's text is what is typed into"
        burst(pilot, "2", "escape", "escape", "escape", "ctrl+p", "stop")
        await has(pilot, "CommandPalette Input", "stop")
        burst(pilot, "escape", "n", "enter", "escape", "escape", "3", "a", "qX")
        await has(pilot, "#address", "qX")
        assert not [what for what, _ in seat.said if what != "focus"]


async def test_a_prompt_of_a_log_has_its_keys(logged: Database) -> None:
    app = make_app([])
    app.seat.store = logged  # type: ignore[attr-defined]
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await sees(pilot, "sick")
        burst(pilot, "5", "/", "q", "enter", "&", "nX")
        await has(pilot, "#log-prompt", "nX")
        assert app.is_running


async def test_what_opens_nothing_in_the_end_takes_the_keys_with_it() -> None:
    async with cockpit(RUNS) as (pilot, seat):
        await sees(pilot, "done")
        detail = seat.store.detail
        seat.store.detail = lambda run_id: detail("no such run")
        burst(pilot, "c", "Xq")
        await sees(pilot, "no run no such run")
        burst(pilot, "/", "d")
        await has(pilot, "#filter", "d")
        assert not isinstance(pilot.app.screen, StopScreen)


async def test_who_leaves_waits_for_no_key() -> None:
    answers = threading.Event()
    async with cockpit(RUNS) as (pilot, seat):
        await sees(pilot, "done")
        seat.store.detail = lambda run_id: answers.wait(timeout=10)
        burst(pilot, "c", "Xy", "ctrl+q")
        await until(pilot, lambda: not pilot.app.is_running, "the session left")
        answers.set()
        assert not seat.said

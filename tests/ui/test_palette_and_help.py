"""Every action can be found: in the palette with its key, in the help of its screen."""

import pytest
from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from dflash_tui.ui import themes
from dflash_tui.ui.commands import ActionCommands, actions

from .cockpit import cockpit, screen_text, sees, sees_no, types
from .scripted_seat import make_run

TEXTUALS = list(Binding.make_bindings(Screen.BINDINGS))
RUNS = [make_run("v5-hard"), make_run("v4", state="stopped")]


async def offered(app: App[None]) -> list[str]:
    """What the palette lists without a word typed, as plain text."""
    provider = ActionCommands(app.screen)
    return [str(hit.prompt) async for hit in provider.discover()]


@pytest.mark.parametrize(
    ("run_id", "wanted"),
    [
        (None, {"open ⏎", "filter /", "new n", "again L", "quit q", "help ?", "theme t", "stop X", "run 2", "copy y"}),
        ("v5-hard", {"panel tab", "zoom z", "window w", "log o", "SQL e", "copy y", "stop X", "runs 1", "back esc"}),
    ],
)
async def test_the_palette_lists_every_action_with_its_key(run_id: str | None, wanted: set[str]) -> None:
    async with cockpit(RUNS, run_id=run_id) as (pilot, _):
        entries = {" ".join(entry.split()[:2]) for entry in await offered(pilot.app)}
        assert wanted <= entries
        doable = {action.name for action in actions(pilot.app.screen) if action.is_enabled}
        assert {entry.split(" ")[0] for entry in await offered(pilot.app)} >= {name.split(" ")[0] for name in doable}


async def test_the_palette_runs_an_action_and_opens_a_run_by_its_name() -> None:
    async with cockpit(RUNS) as (pilot, _):
        await pilot.press("ctrl+p")
        await types(pilot, "open v4")
        await sees(pilot, "stopped, v4")
        await pilot.press("enter")
        await sees(pilot, "■ stopped", "loss")
        await pilot.press("ctrl+p")
        await types(pilot, "zoom")
        await sees(pilot, "Give the screen to this panel")
        await pilot.press("enter")
        await sees_no(pilot, "gradient norm")


async def test_help_names_every_key_of_its_screen_and_what_the_panel_says_of_itself() -> None:
    async with cockpit(RUNS, size=(120, 50), run_id="v5-hard") as (pilot, _):
        known = actions(pilot.app.screen)
        await pilot.press("question_mark")
        await sees(pilot, "Help: loss", "Two humps: two kinds of batches.", "never touches one")
        text = screen_text(pilot.app)
        assert [action.does for action in known if action.does not in text] == []
        await pilot.press("question_mark")
        await sees_no(pilot, "Help: loss")


async def test_what_closes_the_help_is_in_sight_however_long_it_is() -> None:
    async with cockpit(RUNS, size=(80, 24)) as (pilot, _):
        await pilot.press("question_mark")
        await sees(pilot, "Help: Runs", "esc close")
        await pilot.press("end")
        await sees(pilot, "Runs live on their own machines", "esc close")


async def test_every_shown_binding_says_what_it_does() -> None:
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        for key in ("1", "2", "3"):
            await pilot.press(key)
            await pilot.pause()
            silent = [
                active.binding.key
                for active in pilot.app.screen.active_bindings.values()
                if active.binding.description and not active.binding.tooltip and active.binding not in TEXTUALS
            ]
            assert silent == []


async def test_colours_are_tried_at_once_kept_by_enter_and_remembered() -> None:
    async with cockpit(RUNS) as (pilot, _):
        assert pilot.app.theme == "dflash-dark"
        await pilot.press("t", "down")
        await pilot.pause()
        assert pilot.app.theme == "dflash-light"
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.theme == "dflash-dark"
        await pilot.press("t", "j", "j", "enter")
        await pilot.pause()
        assert pilot.app.theme == "dflash-colour-blind"
    assert themes.remembered() == "dflash-colour-blind"
    async with cockpit(RUNS) as (pilot, _):
        assert pilot.app.theme == "dflash-colour-blind"

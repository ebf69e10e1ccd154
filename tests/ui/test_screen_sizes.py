"""No size, no storm of resizes, no theme brings the screens down; too small a terminal is a sentence."""

import pytest
from textual import events
from textual.geometry import Size
from textual.widgets import OptionList

from .cockpit import cockpit, screen_text, sees, sees_no, until
from .scripted_hosts import FINDINGS
from .scripted_seat import make_run

RUNS = [make_run("v5-hard"), make_run("宽" * 30, state="failed", reason="oom-host-likely", no_contact_s=7000.0)]
STORM = [(80, 24), (1, 1), (200, 60), (10, 3), (300, 3)]


async def test_a_page_is_turned_in_lists_that_have_no_line_yet() -> None:
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        for opens in ("ctrl+p", "t", "w"):
            await pilot.press(opens)
            await until(pilot, lambda: bool(pilot.app.screen.query(OptionList)), "a list to choose from")
            await pilot.pause()
            listed = pilot.app.screen.query_one(OptionList)
            # As when hits of the palette have just come: there, and without a place.
            listed.styles.width = listed.styles.height = listed.styles.min_height = 0
            await until(pilot, lambda listed=listed: not listed.scrollable_content_region.size, "no place")
            listed.clear_options()
            listed.add_options(["a", "b"])
            listed.highlighted = 0
            for key in ("pageup", "pagedown"):
                pilot.app.post_message(events.Key(key, None))
            await pilot.pause()
            pilot.app.pop_screen()
        await sees(pilot, "p50 0.913")


async def test_two_keys_at_once_leave_a_dialog_once() -> None:
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        for opens in ("t", "w", "question_mark", "tilde", "n", "X", "e"):
            await pilot.press(opens)
            assert len(pilot.app.screen_stack) == 2, opens
            for key in ("enter", "escape") if opens in ("t", "w") else ("escape", "escape"):
                pilot.app.post_message(events.Key(key, None))
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1, f"{opens} left")
            await pilot.press("2")
        await sees(pilot, "p50 0.913")


async def test_a_storm_of_resizes_while_rows_come_ends_in_a_whole_screen() -> None:
    screens = {
        "question_mark": "Help",
        "X": "Stop v5-hard",
        "n": "New run",
        "4": "$run = v5-hard",
        "3": "Hosts 2",
        "tilde": "Nothing was run",
        "6": "grad_norm median",
        "enter": "p50 0.913",
        "z": "loss",
        "e": "loss.sql",
    }
    async with cockpit(RUNS) as (pilot, seat):
        await pilot.press("space", "j", "space", "k")
        for key, words in screens.items():
            await pilot.press(key)
            for size in STORM:
                seat.advanced("v5-hard")
                # Faster than the screen can follow; most sizes are drawn, some are overtaken.
                pilot.app.post_message(events.Resize(Size(*size), Size(*size)))
                await pilot.pause(0.02)
            await pilot.resize_terminal(120, 40)
            await sees(pilot, words)
            if key not in ("enter", "z"):
                await pilot.press("escape")
        await pilot.press("escape", "escape")
        await sees(pilot, "Runs 2")


async def test_too_small_a_terminal_says_what_it_needs() -> None:
    async with cockpit(RUNS) as (pilot, _):
        focused = pilot.app.focused
        for size in ((39, 24), (80, 9)):
            await pilot.resize_terminal(*size)
            await sees(pilot, "needs 40x10 cells")
            assert "running" not in screen_text(pilot.app)
        await pilot.resize_terminal(40, 10)
        await sees_no(pilot, "needs 40x10")
        await sees(pilot, "running")
        assert pilot.app.focused is focused


async def test_every_theme_draws_line_and_band_apart() -> None:
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        for theme in ("dflash-light", "ansi-dark", "gruvbox", "ansi-light"):
            pilot.app.theme = theme
            await pilot.pause()
            text = screen_text(pilot.app)
            assert "p50 0.913" in text
            assert ("░" in text) == theme.startswith("ansi"), theme


async def test_every_theme_draws_the_hosts() -> None:
    async with cockpit(RUNS) as (pilot, seat):
        seat.findings = FINDINGS
        await pilot.press("3", "j", "c")
        for theme in ("dflash-light", "dflash-colour-blind", "ansi-dark", "ansi-light"):
            pilot.app.theme = theme
            await sees(pilot, "● reachable", "✗ python", "▲ clock")


async def test_without_colour_the_band_is_shade_and_the_cursor_is_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        await sees(pilot, "░", "● running")

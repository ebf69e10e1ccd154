"""No size, no storm of resizes, no theme brings the screens down; too small a terminal is a sentence."""

import pytest

from .cockpit import cockpit, screen_text, sees, sees_no
from .scripted_seat import make_run

RUNS = [make_run("v5-hard"), make_run("宽" * 30, state="failed", reason="oom-host-likely", no_contact_s=7000.0)]
STORM = [(80, 24), (20, 5), (1, 1), (200, 60), (2, 40), (300, 3)]


@pytest.mark.parametrize("keys", [["question_mark"], ["enter", "z"], ["enter", "e"], ["n"], ["X"]])
async def test_a_storm_of_resizes_ends_in_a_whole_screen(keys: list[str]) -> None:
    async with cockpit(RUNS) as (pilot, _):
        await pilot.press(*keys)
        for size in STORM:
            await pilot.resize_terminal(*size)
        await pilot.resize_terminal(120, 40)
        await sees(pilot, {"n": "New run", "e": "loss.sql"}.get(keys[-1] if keys else "", "v5-hard"))
        await pilot.press("escape", "escape", "escape")
        await sees(pilot, "Runs 2")


async def test_too_small_a_terminal_says_what_it_needs() -> None:
    async with cockpit(RUNS) as (pilot, _):
        for size in ((39, 24), (80, 9)):
            await pilot.resize_terminal(*size)
            await sees(pilot, "needs 40x10 cells")
        await pilot.resize_terminal(40, 10)
        await sees_no(pilot, "needs 40x10")
        await sees(pilot, "running")


@pytest.mark.parametrize("theme", ["dflash-light", "ansi-dark", "gruvbox"])
async def test_every_theme_draws_line_and_band_apart(theme: str) -> None:
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        pilot.app.theme = theme
        await pilot.pause()
        text = screen_text(pilot.app)
        assert "p50 0.913" in text
        assert ("░" in text) == theme.startswith("ansi")


async def test_without_colour_the_band_is_shade_and_the_cursor_is_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with cockpit(RUNS, run_id="v5-hard") as (pilot, _):
        await sees(pilot, "░", "● running")

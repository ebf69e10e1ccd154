"""Looking closer at a run: zoom and pan, the cursor in all charts, smoothing, time and tokens as the x axis."""

from typing import Any

import pytest
from textual import events
from textual.geometry import Offset
from textual.screen import Screen
from textual.widgets import Static

from dflash_tui.runs import Window
from dflash_tui.store.base import AttemptRow, PanelResult
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.view import OPEN_END

from .cockpit import cockpit, screen_text, sees, sees_no, until
from .scripted_seat import make_run

RUN = make_run("v5-hard")


def panel(app: Any, name: str) -> Panel:
    return next(panel for panel in app.screen.query(Panel) if panel.name == name)


def subtitle(app: Any, name: str) -> str:
    return str(panel(app, name).border_subtitle)


async def test_zoom_asks_for_the_steps_that_it_shows_and_draws_at_once_what_is_there() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):

        def asked() -> Window:
            window: Window = seat.store.asked[-1][2]
            return window

        await pilot.press("+")
        await sees(pilot, "zoom 11,349..")
        await until(pilot, lambda: asked() == Window.between(11_349, OPEN_END), "its newest half asked for")
        await pilot.press("left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: asked() == Window.between(0, 11_349), "its older half asked for")
        await pilot.press("-")
        await sees_no(pilot, "zoom 0..", "zoom 11")
        await until(pilot, lambda: asked() == Window(), "the whole run asked for again")
        await pilot.press("=", "=", "0")
        await until(pilot, lambda: asked() == Window(), "the whole run asked for again")
        await sees(pilot, "p50 0.913 · whole run", "20k")
        seat.store.gate.clear()
        await pilot.press("left", "shift+left", "+", "+", "+")
        await sees(pilot, "zoom 16,550..19,388", "17k", "18k", "19k")
        assert "20k" not in screen_text(pilot.app)
        seat.store.gate.set()


async def test_the_cursor_reads_all_charts_at_one_step_and_escape_puts_it_away() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        await pilot.press("left")
        await sees(pilot, "cursor 22,698", "┃ p50 0.9432")
        assert subtitle(pilot.app, "grad_norm").startswith("┃ p50 0.")
        assert subtitle(pilot.app, "lr").startswith("┃ y 0.000")
        await pilot.press("h", "h", "l")
        await sees(pilot, "cursor 22,319", "┃ p50 0.9")
        charts = [panel.name for panel in pilot.app.screen.query(Panel) if "┃" in str(panel.border_subtitle)]
        assert charts == ["loss", "grad_norm", "throughput", "lr"]
        await pilot.press("escape")
        await sees(pilot, "p50 0.913 ·")
        assert "cursor" not in screen_text(pilot.app) and "┃ p50" not in screen_text(pilot.app)


async def test_a_click_sets_the_cursor_and_ctrl_and_the_wheel_zoom_there() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        speed = panel(pilot.app, "throughput")
        await pilot.click(speed, offset=(speed.size.width // 2, 4))
        await sees(pilot, "cursor 6,")
        assert speed.has_focus
        await pilot.press("escape")
        await sees_no(pilot, "cursor 6,")
        x, y = speed.size.width // 2, 4
        wheel = events.MouseScrollUp(speed, x, y, 0, -1, 0, False, False, True, speed.region.x + x, speed.region.y + y)
        speed.post_message(wheel)
        await sees(pilot, "zoom 3,")


async def test_lines_are_smoothed_a_panel_at_a_time_and_the_title_says_so() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, _):
        await pilot.press("m")
        await sees(pilot, "loss (smoothed 0.6)")
        await pilot.press("m", "o")
        await sees(pilot, "loss (log, smoothed 0.9)")
        assert "smoothed" not in str(panel(pilot.app, "lr").border_title)
        await pilot.press("o", "m", "m")
        await sees_no(pilot, "smoothed")
        await pilot.press("tab", "tab", "tab")
        await until(pilot, lambda: panel(pilot.app, "acceptance").has_focus, "the panel without rows in focus")
        panel(pilot.app, "length_buckets").focus()
        await until(pilot, lambda: not pilot.app.screen.active_bindings["m"].enabled, "a table has no line")


async def test_charts_are_over_time_or_tokens_instead_of_steps() -> None:
    async with cockpit([make_run("v5-hard", attempt=2)], run_id="v5-hard") as (pilot, seat):
        seat.store.attempts = [AttemptRow(2, 1, 11_001, 11_000, 2**63 - 1, 1.0, 11_000)]
        await pilot.press("x")
        await sees(pilot, "x time", "9h")
        await sees(pilot, "┊")
        await pilot.press("left")
        await sees(pilot, "cursor 22,698, 13h 22m")
        await pilot.press("x")
        await sees(pilot, "cursor 22,698, 1.2B tokens", "1.0B")
        await pilot.press("x")
        await sees(pilot, "20k")
        await sees_no(pilot, "tokens")
        seat.store.course = [(1, 0, 0, 22_698, None, None, None, None)]
        await pilot.press("x")
        await sees(pilot, "this log has no `time`: the x axis stays the step")
        assert "20k" in screen_text(pilot.app)


async def test_the_cursor_reads_a_panel_over_time_where_its_step_was_and_a_click_there_sets_it() -> None:
    line = {"x": "step", "y": "mean"}
    rows = [[22_698 * i // 10, 1.0 + i / 10] for i in range(11)]
    loss = PanelResult("loss", "loss", "line", "rows", columns=["step", "mean"], rows=rows, axes=line)
    hours = {"x": "time", "y": "busy", "x_scale": "duration"}
    rows = [[3600.0 * i, 90.0 + i / 10] for i in range(15)]
    gpu = PanelResult("gpu", "GPU", "line", "rows", columns=["time", "busy"], rows=rows, axes=hours)
    async with cockpit([RUN]) as (pilot, seat):
        seat.store.panels = lambda window, buckets: [loss, gpu]
        await pilot.press("enter")
        await sees(pilot, "GPU", "12h")
        await pilot.press("left")
        await sees(pilot, "cursor 22,698", "┃ busy 91.30 · at 13h 00m")
        await pilot.press("shift+left")
        await sees(pilot, "cursor 0", "┃ busy 90 · at 0 s")
        await pilot.press("escape")
        await sees_no(pilot, "cursor")
        chart = panel(pilot.app, "gpu")
        await pilot.click(chart, offset=(chart.size.width // 2, 4))
        await sees(pilot, "cursor 8,574", "· at 5h 00m")


async def test_a_run_is_held_against_what_others_reached() -> None:
    rows = [[100 * i, 1.0 + i / 10] for i in range(27)]
    axes = {"x": "step", "y": "mean", "y2": "p90"}
    columns, rows = ["step", "mean", "p90"], [[*row, 9.0] for row in rows]
    streak = PanelResult("streak", "top-8 streak", "line", "rows", columns=columns, rows=rows, axes=axes, unit="slots")
    slots = [[str(slot), 0.46] for slot in range(1, 16)]
    bars = {"x": "slot", "y": "accuracy"}
    positions = PanelResult(
        "positions", "by position", "bars", "rows", columns=["slot", "accuracy"], rows=slots, axes=bars
    )
    async with cockpit([RUN]) as (pilot, seat):
        seat.store.panels = lambda window, buckets: [streak, positions]
        await pilot.press("enter")
        await sees(pilot, "top-8 streak", "by position")
        await pilot.press("R", "R")
        await sees(
            pilot, "held against z-lab's reference drafter", "29% of story 12.38", "50%", "v5-hard", "against story"
        )
        await pilot.press("R")
        await sees_no(pilot, "story 12.38", "against story")


async def test_a_click_on_what_has_just_gone_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cockpit([make_run("v5-hard")], run_id="v5-hard") as (pilot, _):
        # What a screen knows until it is laid out anew.
        gone = Static("gone")
        monkeypatch.setattr(Screen, "get_widget_and_offset_at", lambda screen, x, y: (gone, Offset(0, 0)))
        pilot.app.post_message(events.MouseDown(None, 60, 20, 0, 0, 1, False, False, False, 60, 20))
        await pilot.pause()
        await sees(pilot, "p50 0.913")

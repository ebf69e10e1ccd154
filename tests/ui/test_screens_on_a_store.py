"""The screens over the real database: the story's shapes, a log that grows, no rows, a panel of one's own."""

import json
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from dflash_tui import config, paths
from dflash_tui.runs import Cursor, RunEvent, RunRecord, RunState
from dflash_tui.store.mirror import Mirror, anchor
from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.messages import RunAdvanced
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.seat import SessionSeat

from .cockpit import FROZEN_S, sees, sees_no


def story_lines(first: int, last: int) -> str:
    """Train records with the story's shapes: two humps of loss, tiny gradients with one spike, a steady speed."""
    draw = random.Random(first)
    return "".join(
        json.dumps({
            "step": step,
            "epoch": step / 12_215,
            "loss": draw.gauss(0.9 if draw.random() < 0.7 else 2.7, 0.05) + 4 * math.exp(-step / 800),
            "accuracy": 0.26 * (1 - math.exp(-step / 5000)),
            "lr": 6e-4 * min(1.0, step / 2900),
            "noise_std": 0.1 * min(1.0, step / 2900),
            "avg_batch_size": 19.4,
            "avg_seq_len": draw.uniform(1961, 3746),
            "ddtree_streak8": 3.6 * (1 - math.exp(-step / 5000)),
            "tok_per_sec": draw.gauss(26_146, 4),
            "grad_norm": 41.5 if step == 11_204 else draw.lognormvariate(-2.7, 1.1),
            "padding_eff": 0.846,
            "time": 1.7e9 + 2.1 * step,
        }) + "\n"
        for step in range(first, last + 1)
    )  # fmt: skip


@asynccontextmanager
async def session(size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    """A session of its own, owner of its store, from its first screen to the closed seat."""
    app = DflashApp(lambda advanced: SessionSeat(config.load(), advanced), clock=lambda: FROZEN_S)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            await sees(pilot, "Runs", "No runs yet.")
            yield pilot
    finally:
        await app.seat.close()


async def take_in(pilot: Pilot[None], run_id: str, log: Path) -> None:
    """What the collector does when a log has grown: its lines into the store, and the news of it."""
    await pilot.app.seat.ask(lambda store: store.ingest(run_id, log))
    for news in (None, run_id):
        pilot.app.screen_stack[0].post_message(RunAdvanced(news))


async def test_a_run_of_the_story_fills_the_dashboard(tmp_path: Path) -> None:
    log = tmp_path / "story.jsonl"
    start = {"event": "start", "total_steps": 73_290, "config": {"lr": 6e-4}}
    log.write_text(json.dumps(start) + "\n" + story_lines(1, 23_000))
    async with session((200, 60)) as pilot:
        await take_in(pilot, "story", log)
        await sees(pilot, "story", "23,000/73,290  31%")
        await sees(pilot, "Runs 1")
        await pilot.press("enter")
        await sees(pilot, "loss", "gradient norm", "vitals", "grad_norm", "41.50", "6e-04", "26,146")
        await sees(pilot, "tau_linear_macro was never logged")
        states = {panel.name: panel.result.state for panel in pilot.app.screen.query(Panel) if panel.result}
        assert len(states) >= 14
        empty = {"acceptance", "accept_len", "gpu", "positions", "bucket_loss", "step_time"}
        # The checks may still be looking.
        assert {name for name, state in states.items() if state != "rows"} - {"findings"} == empty


async def test_a_log_that_grows_grows_on_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "live.jsonl"
    log.write_text(story_lines(1, 40))
    async with session((120, 40)) as pilot:
        await take_in(pilot, "live", log)
        await sees(pilot, "Runs 1")
        await pilot.press("enter")
        await sees(pilot, "step 40", "loss")
        for last in (80, 120):
            with log.open("a") as file:
                file.write(story_lines(last - 39, last))
            await take_in(pilot, "live", log)
            await sees(pilot, f"step {last}")


async def test_a_run_without_rows_says_so_in_every_panel_and_what_its_trainer_said() -> None:
    record = RunRecord("fresh-0001", "fresh", "train", "local", "/work/fresh", created=1.0)
    said = b"loading\nresponses: 64 of 1088 [red]\x1b[2J\n"
    async with session((120, 40)) as pilot:
        await pilot.app.seat.ask(lambda store: store.register_run(record))
        Mirror("fresh-0001").append("attempts/1/output.log", said, Cursor(len(said), 1, anchor(said)))
        pilot.app.screen.post_message(RunAdvanced(None))
        await sees(pilot, "fresh")
        await sees(pilot, "Runs 1")
        await pilot.press("enter")
        await sees(pilot, "no step yet", "no data", "responses: 64 of 1088 [red]\\x1b[2J")
        await sees(pilot, "training cannot be checked")
        orphaned = RunEvent(2.0, "state", RunState.ORPHANED, attempt=1, text="its supervisor is gone")
        await pilot.app.seat.ask(lambda store: store.event("fresh-0001", orphaned))
        pilot.app.screen_stack[0].post_message(RunAdvanced("fresh-0001"))
        await sees(pilot, "its supervisor is gone")
        await sees_no(pilot, "responses: 64")
        panels = [panel for panel in pilot.app.screen.query(Panel) if panel.is_asked]
        assert [
            panel.name for panel in panels if panel.result is None or not (panel.result.why or panel.result.rows)
        ] == []


async def test_a_panel_of_ones_own_appears_and_a_broken_one_says_where(tmp_path: Path) -> None:
    own = paths.config_dir() / "panels"
    own.mkdir(parents=True)
    mine = "-- Mine.\n--\n-- title: my own\n-- chart: table\n-- order: 5\nselect 42 as answer;\n"
    (own / "mine.sql").write_text(mine)
    (own / "broken.sql").write_text("-- Broken.\n--\n-- title: broken\n-- chart: table\nselect loss from stepz;\n")
    log = tmp_path / "log.jsonl"
    log.write_text(story_lines(1, 50))
    async with session((200, 60)) as pilot:
        await take_in(pilot, "r", log)
        await sees(pilot, "Runs 1")
        await pilot.press("enter")
        await sees(pilot, "my own", "answer", "42")
        # One that comes while its run is on the screen, and one that goes.
        (own / "late.sql").write_text(mine.replace("my own", "late but here").replace("42", "4711"))
        (own / "mine.sql").unlink()
        pilot.app.screen.post_message(RunAdvanced("r"))
        await sees(pilot, "late but here", "4,711")
        await sees_no(pilot, "my own")
        await pilot.press("shift+tab", "z")
        await sees(pilot, "broken.sql:", "stepz")

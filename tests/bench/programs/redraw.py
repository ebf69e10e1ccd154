"""What one redraw of a dashboard costs on the event loop, ms: all panels in sight of the run `r`, at 200x60.

As when rows came in: each panel gets another answer, one with a tenth fewer rows on an axis of its own, and is drawn
anew, a panel at a turn of the loop. Beside it the longest turn of a hundred, and what it takes to put the whole screen
together, of which textual does a part at a time.
"""

import asyncio
import json
import statistics
import time

from msgspec.structs import replace

from dflash_tui import config
from dflash_tui.store.base import PanelResult
from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.panel_grid import PanelGrid
from dflash_tui.ui.seat import SessionSeat

ROUNDS = 40
LOOK_S = 0.05


def without_last(result: PanelResult) -> PanelResult:
    return replace(result, rows=result.rows[: len(result.rows) * 9 // 10])


async def main() -> dict[str, float]:
    app = DflashApp(lambda advanced: SessionSeat(config.load(), advanced), "r")
    try:
        async with app.run_test(size=(200, 60)) as pilot:
            panels: list[Panel] = []
            while not panels or any(panel.result is None for panel in panels):
                await asyncio.sleep(LOOK_S)
                panels = list(app.screen.query(Panel))
            await pilot.pause(1.0)
            grid = app.screen.query_one(PanelGrid)
            panels = [panel for panel in panels if panel.region.overlaps(grid.region)]
            answers = [(panel.result, without_last(panel.result)) for panel in panels]
            draw_ms, turn_ms, compose_ms = [], [], []
            for round_ in range(ROUNDS):
                begun = time.thread_time()
                for panel, answer in zip(panels, answers, strict=True):
                    turn = time.thread_time()
                    panel.show(answer[round_ % 2 - 1])
                    panel.drawn()
                    turn_ms.append((time.thread_time() - turn) * 1000)
                drawn = time.thread_time()
                app.screen._compositor.render_strips()
                draw_ms.append((drawn - begun) * 1000)
                compose_ms.append((time.thread_time() - drawn) * 1000)
                await pilot.pause(LOOK_S)
    finally:
        await app.seat.close()
    return {
        "draw_ms": statistics.median(draw_ms),
        "turn_ms": sorted(turn_ms)[len(turn_ms) * 99 // 100],
        "compose_ms": statistics.median(compose_ms),
        "panels": len(panels),
        "rounds": ROUNDS,
    }


print(json.dumps(asyncio.run(main())))

"""From a line that a trainer writes to the screen of a session that has its run in focus, ms. Words: local|ssh, a log.

The whole way: the far file, the agent, sshd, the mirror, the tables, the panels of the dashboard. A line counts as on
the screen when the dashboard, drawn anew, tells its step. With the word `keys` instead: what a key waits for, while the
link is as it is, and with a round trip that is 150 ms longer.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from dflash_tui import config, control, paths, requests
from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.seat import SessionSeat
from dflash_tui.watch import Session
from tests.pvehost.fixtures import reach_by
from tests.pvehost.proxy import FaultProxy
from tests.pvehost.sshd import SshServer

NUM_LINES, NUM_WARM, NUM_KEYS = 23, 3, 40
LOOK_S = 0.005
DELAY_S = 0.075


def on_screen(pilot: Pilot[None], words: str) -> bool:
    """What the compositor would draw now."""
    return any(words in strip.text for strip in pilot.app.screen._compositor.render_strips())


async def until(pilot: Pilot[None], words: str) -> None:
    while not on_screen(pilot, words):  # noqa: ASYNC110 - what a person does: look
        await asyncio.sleep(LOOK_S)


async def measure_lines(pilot: Pilot[None], log: Path, first: int) -> list[float]:
    last = json.loads(log.read_bytes().splitlines()[-1])
    times = []
    for step in range(first, first + NUM_LINES):
        # At any moment between two sweeps.
        await asyncio.sleep(random.uniform(0.3, 1.0))
        with log.open("ab") as out:
            out.write(json.dumps({**last, "step": step}).encode() + b"\n")
        begun = time.perf_counter()
        await until(pilot, f"step {step:,}")
        await pilot.pause()
        times.append((time.perf_counter() - begun) * 1000)
    return times[NUM_WARM:]


async def measure_keys(pilot: Pilot[None]) -> list[float]:
    """From a key to the screen that shows it: help, and back."""
    times = []
    for number in range(NUM_KEYS):
        await asyncio.sleep(random.uniform(0, 0.2))
        key = ("escape", None) if number % 2 else ("question_mark", "?")
        before = len(pilot.app.screen_stack)
        begun = time.perf_counter()
        pilot.app.post_message(events.Key(*key))
        while len(pilot.app.screen_stack) == before or not on_screen(pilot, " "):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        times.append((time.perf_counter() - begun) * 1000)
    return times


@asynccontextmanager
async def dashboard(run_id: str, step: int) -> AsyncIterator[Pilot[None]]:
    app = DflashApp(lambda advanced: SessionSeat(config.load(), advanced), run_id)
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, f"step {step:,}")
            yield pilot
    finally:
        await app.seat.close()


async def launch(host: str, log: Path, folder: Path) -> str:
    """A run that writes nothing itself: its log is this program's to write."""
    script = folder / "writes_elsewhere.py"
    script.write_text("import time\ntime.sleep(3600)\n")
    session = Session(config.load(), lambda run_id: None)
    await session.open()
    try:
        request = requests.ScriptRequest(script, host, log=str(log))
        return (await control.launch_script(session, request)).run_id
    finally:
        await session.close()


async def stop(run_id: str) -> None:
    session = Session(config.load(), lambda run_id: None)
    await session.open()
    try:
        await control.stop(session, run_id, kill=True)
    finally:
        await session.close()


async def main(kind: str, story: Path, folder: Path) -> dict[str, float]:
    folder.mkdir(parents=True)
    log = folder / "train_log.jsonl"
    log.write_bytes(story.read_bytes())
    first = log.read_bytes().count(b"\n") + 1
    server = SshServer.make(folder / "sshd")
    server.start()
    (folder / ".ssh").mkdir()
    os.environ["HOME"] = str(folder)
    try:
        async with FaultProxy.to(("127.0.0.1", server.port)) as proxy:
            address = reach_by(folder / ".ssh/config", server, proxy.port if kind == "keys" else server.port)
            paths.config_dir().mkdir(parents=True)
            there = f'python = "{sys.executable}"\nworkdir = "{folder}/far"\n'
            text = f'[hosts.box]\nkind = "ssh"\naddress = "{address}"\n{there}' if kind != "local" else ""
            (paths.config_dir() / "config.toml").write_text(text)
            run_id = await launch("local" if kind == "local" else "box", log, folder)
            try:
                async with dashboard(run_id, first - 1) as pilot:
                    if kind != "keys":
                        return told("", await measure_lines(pilot, log, first))
                    found = told("fast_", await measure_keys(pilot))
                    proxy.delay_s = DELAY_S
                    found |= told("slow_", await measure_keys(pilot))
                    proxy.delay_s = 0.0
                    return found
            finally:
                await stop(run_id)
    finally:
        server.end_sessions()
        server.stop()


def told(name: str, times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {f"{name}median_ms": statistics.median(times), f"{name}p95_ms": times[int(len(times) * 0.95)]}


print(json.dumps(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), paths.data_dir().parent / "far"))))

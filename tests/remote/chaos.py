"""Chaos on a link: launches that are cut off, readers that are killed under a growing log, stops against ends.

    python -m tests.remote.chaos [--times N] [--over ssh|proxmox] [--seed S]

Over a real SSH server, into a stand-in of a container too, behind a proxy that resets connections. It prints what it
has counted; the first thing that is not as it must be ends it. `test_chaos.py` is the short form.
"""

import argparse
import asyncio
import hashlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dflash_tui import collect, control, requests
from dflash_tui.config import Config, HostSpec
from dflash_tui.errors import UnreachableError
from dflash_tui.hosts import open_host
from dflash_tui.remote import launch as launching
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.follow import LOG
from dflash_tui.remote.launch import LaunchedRun, launch, status, stop
from dflash_tui.runs import RunRecord, RunState
from dflash_tui.watch import Session

from ..pvehost.fixtures import python_folders, reach_by
from ..pvehost.proxy import FaultProxy
from ..pvehost.pve import PveHost, missing_pve
from ..pvehost.sshd import SshServer, missing_sshd
from .far_side import TOYS, assert_nobody_lives_below, processes_below, until

PATIENCE_S = 60.0
# Lines in bursts, at a pace that a test can choose, and the last one when it says so.
WRITER = """
import os, sys, time
num_lines, seconds = int(sys.argv[1]), float(sys.argv[2])
begun, n = time.monotonic(), 0
with open("train_log.jsonl", "ab", buffering=0) as log:
    while n < num_lines:
        due = min(num_lines, 1 + int((time.monotonic() - begun) / seconds * num_lines))
        if due == num_lines and not os.path.exists("finish"):
            due -= 1
        for k in range(n + 1, due + 1):
            log.write(b'{"step": %d, "loss": %f, "note": "%s"}\\n' % (k, 1 / k, b"x" * (k % 97)))
        n = max(n, due)
        time.sleep(0.003)
"""


@dataclass(frozen=True)
class Far:
    """A machine behind a proxy: `folder` is its workdir as it is seen from here."""

    spec: HostSpec
    folder: Path
    server: SshServer | PveHost
    proxy: FaultProxy

    def run(self, run_id: str) -> Path:
        return self.folder / "dflash-runs" / run_id

    def trainers(self, run_id: str) -> list[int]:
        """By the pids of this machine, also of those in a container."""
        found = processes_below(Path(f"{self.spec.workdir}/dflash-runs/{run_id}"))
        return [pid for pid in found if b"\0-m\0trainer\0" in _command(pid)]


async def cut_launches(far: Far, times: int, chance: random.Random) -> Counter[str]:
    """Each launch is cut off at a random moment, then asked for again: there is one trainer, and only ever was one."""
    told: Counter[str] = Counter()
    span_s = 0.0
    for run_id in ("first", "whole"):
        # The first one brings agent and code.
        begun = time.monotonic()
        await _launch(far, run_id)
        span_s = time.monotonic() - begun
    for number in range(times):
        run_id = f"cut-{number}"
        first = asyncio.create_task(_launch(far, run_id))
        await asyncio.sleep(chance.uniform(0, span_s))
        far.proxy.reset()
        try:
            await first
            outcome = "answered before the cut"
        except UnreachableError:
            outcome = "cut, and nothing had been started"
        again = await _launch(far, run_id)
        if outcome.startswith("cut") and again.already:
            outcome = "cut, and it had been started"
        told[outcome] += 1
        await until(lambda run_id=run_id: far.trainers(run_id), f"{run_id} runs", PATIENCE_S)
        assert len(far.trainers(run_id)) == 1, run_id
        async with agent_on(far.spec) as agent:
            assert (await status(agent, run_id)).state is RunState.RUNNING
            await stop(agent, run_id, grace_s=0)
        log = (far.run(run_id) / LOG).read_bytes()
        assert log.count(b'"event": "start"') == 1, f"{run_id} was started twice"
    async with agent_on(far.spec) as agent:
        for run_id in ("first", "whole"):
            await stop(agent, run_id, grace_s=0)
    return told


async def kill_readers(far: Far, times: int, num_lines: int, seconds: float, chance: random.Random) -> Counter[str]:
    """The server's sessions are killed while a log grows: the mirror is the log, each line is in the tables once."""
    told: Counter[str] = Counter()
    session = Session(Config(hosts={far.spec.name: far.spec}), lambda run_id: None)
    await session.open()
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(WRITER)
            script.flush()
            request = requests.ScriptRequest(Path(script.name), far.spec.name, (str(num_lines), str(seconds)), log=LOG)
            run_id = (await control.launch_script(session, request)).run_id
        while told["kills"] < times:
            await asyncio.sleep(chance.uniform(0, 0.3))
            told["kills"] += far.server.end_sessions() > 0
        told["lines at the last kill"] = (far.run(run_id) / LOG).read_bytes().count(b"\n")
        (far.run(run_id) / "finish").touch()
        await _until_over(session, run_id)
        log, mirror = (far.run(run_id) / LOG).read_bytes(), control.Mirror(run_id).path(LOG).read_bytes()
        assert hashlib.sha256(mirror).digest() == hashlib.sha256(log).digest(), "the mirror is not the log"
        assert not control.Mirror(run_id).older(LOG), "a log that only grew has begun anew"
        sql = "select count(*), count(distinct step), max(step) from steps where run = $run"
        with session.store.query(sql, {"run": run_id}) as answer:
            assert answer.rows() == [(num_lines, num_lines, num_lines)]
        told["lines"], told["bytes"] = log.count(b"\n"), len(log)
    finally:
        await session.close()
    return told


async def race_stops(far: Far, times: int, chance: random.Random) -> Counter[str]:
    """A stop comes around a trainer's own end: each run is one of the two, for good, and its log agrees."""
    told: Counter[str] = Counter()
    config = {"steps": 0, "step_s": 0.005, "on_term": "save", "end": {"reason": "completed", "exit_code": 0}}
    host = open_host(far.spec)
    async with AgentClient.open(host, far.spec) as agent:
        for number in range(times):
            run_id = f"race-{number}"
            await launch(agent, RunRecord(run_id, "race", "train"), config, source=TOYS / "toy")
            log = far.run(run_id) / LOG
            await until(lambda log=log: log.exists() and log.read_bytes().count(b"\n") > 2, "it logs", PATIENCE_S)
            finish = (far.run(run_id) / "finish").touch
            asyncio.get_running_loop().call_later(chance.uniform(0, 0.03), finish)
            await asyncio.sleep(chance.uniform(0, 0.03))
            found = await stop(agent, run_id, grace_s=30)
            is_completed = b'"event": "end"' in log.read_bytes()
            right = (RunState.FINISHED, "completed") if is_completed else (RunState.STOPPED, "stopped")
            assert (found.state, found.reason) == right, (run_id, found)
            assert (await stop(agent, run_id, grace_s=0)).state is found.state, "an end is one for good"
            assert not far.trainers(run_id)
            told[str(found.state)] += 1
    await host.close()
    return told


async def _launch(far: Far, run_id: str) -> LaunchedRun:
    async with agent_on(far.spec) as agent:
        return await launch(agent, RunRecord(run_id, "chaos", "train"), {"steps": 0}, source=TOYS / "toy")


async def _until_over(session: Session, run_id: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not RunState((await session.ask(lambda store: store.detail(run_id))).run.state).is_over:
        assert time.monotonic() < end, session.contact("far")
        await session.refresh()
        await asyncio.sleep(0.2)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@asynccontextmanager
async def behind_a_proxy(kind: str, server: SshServer | PveHost, config: Path, folder: Path) -> AsyncIterator[Far]:
    """`config` is the ~/.ssh/config of this process; nobody lives in the workdir when it is left."""
    async with FaultProxy.to(("127.0.0.1", server.port)) as proxy:
        words = {"python": sys.executable, "name": "far", "address": reach_by(config, server, proxy.port)}
        if isinstance(server, PveHost):
            workdir = f"/workspace/{os.urandom(4).hex()}"
            folder = server.rootfs(200) / workdir[1:]
            spec = HostSpec(kind="proxmox", vmid=200, workdir=workdir, **words)
        else:
            spec = HostSpec(kind="ssh", workdir=str(folder), **words)
        folder.mkdir()
        yield Far(spec, folder, server, proxy)
        assert_nobody_lives_below(Path(str(spec.workdir)))


@contextmanager
def _server(kind: str, folder: Path) -> Iterator[SshServer | PveHost]:
    if why := missing_sshd() if kind == "ssh" else missing_pve():
        sys.exit(f"there is no chaos over {kind} here: {why}")
    if kind == "ssh":
        server = SshServer.make(folder / "sshd")
        server.start()
        yield server
        server.end_sessions()
        server.stop()
        return
    host = PveHost.make(folder / "pve", binds=python_folders())
    host.add_container(200)
    host.start()
    try:
        host.pct("start", "200")
        yield host
    finally:
        host.stop()


async def _main(kind: str, times: int, seed: int) -> None:
    launching.SETTLE_S = 0.0
    # Nobody waits a minute for the hundredth reconnect.
    collect.BACKOFF_MAX_S = 0.2
    with tempfile.TemporaryDirectory(prefix="dflash-chaos-") as name:
        folder = Path(name)
        (folder / ".ssh").mkdir()
        (folder / ".ssh/config").touch()
        os.environ |= {"HOME": name, "DFLASH_TUI_HOME": f"{name}/home"}
        with _server(kind, folder) as server:
            async with behind_a_proxy(kind, server, folder / ".ssh/config", folder / "far") as far:
                chance = random.Random(seed)
                print(f"{times} launches over {kind}, cut off:", *_lines(await cut_launches(far, times, chance)))
                kills, lines = 2 * times, 2000 * times
                told = await kill_readers(far, kills, lines, 1.0 * times, chance)
                print(f"{kills} kills under a log of {lines:,} lines:", *_lines(told))
                print(f"{times} stops against ends:", *_lines(await race_stops(far, times, chance)), flush=True)


def _lines(told: Counter[str]) -> list[str]:
    return [f"\n  {number:,}  {what}" for what, number in sorted(told.items())]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--over", choices=("ssh", "proxmox"), default="ssh")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    words = parser.parse_args()
    print(f"seed {words.seed}")
    asyncio.run(_main(words.over, words.times, words.seed))

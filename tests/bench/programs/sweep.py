"""50 connections x 10 runs on one loopback sshd: ms of a sweep of all, and the share of a core that following takes.

The runs are folders whose locks and logs one process holds and writes: what is measured is who reads, not who trains.
Words: `hold FOLDER` for that process.
"""

import asyncio
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from dflash_tui import paths
from dflash_tui.config import Config, HostSpec
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.runs import Cursor, RunEvent, RunRecord, RunState
from dflash_tui.watch import Session
from tests.pvehost.fixtures import stanza
from tests.pvehost.sshd import SshServer

NUM_HOSTS, NUM_RUNS = 50, 10
NUM_SWEEPS, NUM_WARM = 45, 5
STEADY_S = 20.0
LINE_EVERY_S = 1.0


def run_ids(host: int) -> list[str]:
    return [f"r{host}-{n}" for n in range(NUM_RUNS)]


def far(folder: Path, host: int) -> Path:
    return folder / f"far-{host}"


def make_runs(folder: Path) -> None:
    """As a launch leaves them: 500 runs that their supervisors have just begun."""
    where = {"boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "pid1_start": 0}
    for host in range(NUM_HOSTS):
        far(folder, host).mkdir(mode=0o700)
        (far(folder, host) / "dflash-runs").mkdir(mode=0o700)
        for run_id in run_ids(host):
            run = far(folder, host) / "dflash-runs" / run_id
            (run / "attempts/1").mkdir(parents=True)
            state = {"run_id": run_id, "attempt": 1, "where": where, "child": [os.getpid(), 0], "started": time.time()}
            (run / "attempts/1/state.json").write_text(json.dumps({**state, "supervisor": None, "log_bytes": 0}))
            (run / "attempts/1/output.log").write_text("ready\n")


def hold(folder: Path) -> None:
    """Hold every lock, and write a line into every log each second, until stdin ends."""
    runs = [far(folder, host) / "dflash-runs" / run_id for host in range(NUM_HOSTS) for run_id in run_ids(host)]
    locks = [(run / "lock").open("wb") for run in runs]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    logs = [(run / LOG).open("ab", buffering=0) for run in runs]
    os.set_blocking(0, False)
    print("held", flush=True)
    step = 0
    while sys.stdin.buffer.read(1) != b"":
        step += 1
        line = {"step": step, "loss": 1 / step, "accuracy": 0.5, "lr": 6e-4, "grad_norm": 1.0, "tok_per_sec": 1e5}
        for log in logs:
            log.write(json.dumps(line).encode() + b"\n")
        time.sleep(LINE_EVERY_S)


async def one_sweep(agents: list[AgentClient], cursors: dict[str, dict[str, Cursor]]) -> None:
    heard = await asyncio.gather(
        *(sweep(agent, {run: cursors[run] for run in run_ids(host)}) for host, agent in enumerate(agents))
    )
    for answer in heard:
        for run_id, what in answer.items():
            assert isinstance(what, Heard) and what.status.state is RunState.RUNNING, what
            cursors[run_id] |= {chunk.stream: chunk.cursor for chunk in what.chunks}


async def measure_sweeps(specs: list[HostSpec]) -> dict[str, float]:
    cursors: dict[str, dict[str, Cursor]] = {run: {} for host in range(NUM_HOSTS) for run in run_ids(host)}
    async with AsyncExitStack() as stack:
        agents = await asyncio.gather(*(stack.enter_async_context(agent_on(spec)) for spec in specs))
        wall, cpu = [], []
        for _ in range(NUM_SWEEPS):
            begun, used = time.perf_counter(), time.process_time()
            await one_sweep(agents, cursors)
            wall.append((time.perf_counter() - begun) * 1000)
            cpu.append((time.process_time() - used) * 1000)
            await asyncio.sleep(0.1)
    wall, cpu = sorted(wall[NUM_WARM:]), cpu[NUM_WARM:]
    return {
        "median_ms": statistics.median(wall),
        "p95_ms": wall[int(len(wall) * 0.95)],
        "cpu_ms": statistics.median(cpu),
    }


async def measure_following(specs: list[HostSpec]) -> dict[str, float]:
    """What a session takes that follows all of them, mirrors and tables included."""
    session = Session(Config(hosts={spec.name: spec for spec in specs}), lambda run_id: None)
    await session.open()
    try:
        for host, spec in enumerate(specs):
            for run_id in run_ids(host):
                path = f"{spec.workdir}/dflash-runs/{run_id}"
                session.store.register_run(
                    RunRecord(run_id, run_id, "train", host=spec.name, path=path, log=f"{path}/{LOG}")
                )
                session.store.event(run_id, RunEvent(time.time(), "state", "running", attempt=1))
        await session.refresh()
        while num_followed(session) < NUM_HOSTS * NUM_RUNS:  # noqa: ASYNC110 - the store tells no one
            await asyncio.sleep(0.5)
        found = {}
        for name, run_id in (("list", None), ("focus", "r0-0")):
            session.focus(run_id)
            await asyncio.sleep(5)
            lines, begun, used = num_lines(session), time.perf_counter(), time.process_time()
            await asyncio.sleep(STEADY_S)
            took = time.perf_counter() - begun
            found[f"{name}_pct"] = (time.process_time() - used) / took * 100
            found[f"{name}_lines_per_s"] = (num_lines(session) - lines) / took
        return found
    finally:
        await session.close()


def num_followed(session: Session) -> int:
    return ask(session, "select count(*) from runs where last_step is not null")


def num_lines(session: Session) -> int:
    return ask(session, "select count(*) from records")


def ask(session: Session, sql: str) -> int:
    with session.store.query(sql) as answer:
        return int(answer.rows()[0][0])


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    make_runs(folder)
    server = SshServer.make(folder / "sshd")
    server.start()
    (folder / ".ssh").mkdir()
    os.environ["HOME"] = str(folder)
    names = [f"host{n}" for n in range(NUM_HOSTS)]
    (folder / ".ssh/config").write_text("".join(stanza(name, server, server.user) for name in names))
    specs = [
        HostSpec(kind="ssh", name=name, address=name, python=sys.executable, workdir=str(far(folder, host)))
        for host, name in enumerate(names)
    ]
    argv = [sys.executable, __file__, "hold", str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin and holder.stdout
        assert holder.stdout.readline() == b"held\n"
        try:
            found = {**asyncio.run(measure_sweeps(specs)), **asyncio.run(measure_following(specs))}
        finally:
            holder.stdin.close()
            server.end_sessions()
            server.stop()
    print(json.dumps(found))


if sys.argv[1:2] == ["hold"]:
    hold(Path(sys.argv[2]))
else:
    main(paths.data_dir().parent / "sweep")

"""Many hosts at once: one that is slow or silent delays no other; GPUs are sampled beside the logs; what is forgotten
while it is followed stays forgotten."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import config, control, gpu_watch
from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, UnreachableError, UsageError
from dflash_tui.remote.follow import Heard
from dflash_tui.requests import ScriptRequest
from dflash_tui.watch import Session

from ..pvehost.fixtures import reach_by
from ..pvehost.proxy import FaultProxy
from ..pvehost.sshd import SshServer
from ..seat import seated
from .far_side import assert_nobody_lives_below, processes_below
from .nvidia import FakeNvidiaSmi

pytestmark = pytest.mark.slow

ENDLESS = (
    "import itertools, time\nfor n in itertools.count(1):\n    print({'step': n, 'loss': 1.0})\n    time.sleep(0.02)\n"
)
CARDS = "index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n0, H200, 9000, 81920, 90\n"


async def until_steps(session: Session, run_id: str, more: int, timeout_s: float = 60) -> None:
    """Until there are `more` steps than now."""
    wanted = steps(session, run_id) + more
    deadline = time.monotonic() + timeout_s
    while steps(session, run_id) < wanted:
        silence = {host: session.contact(host) for host in session._collectors}
        assert time.monotonic() < deadline, silence
        await asyncio.sleep(0.05)


def steps(session: Session, run_id: str) -> int:
    with session.store.query("select count(*) from steps where run = $run", {"run": run_id}) as answer:
        return int(answer.rows()[0][0])


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    """Runs of it are gone after the test, also after one that failed in the middle."""
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS)
    yield file
    for pid in processes_below(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_a_host_that_is_slow_or_silent_delays_no_other(
    box: SshServer, ssh_config: Path, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.2)
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy.to(("127.0.0.1", box.port))) for _ in range(2)]
        ports = {"good": box.port, "slow": proxies[0].port, "dark": proxies[1].port}
        hosts = hosts_by(ssh_config, box, tmp_path, ports)
        monkeypatch.setattr(config, "load", lambda: config.Config(hosts=hosts))
        session = await stack.enter_async_context(seated())
        runs = {}
        for name in hosts:
            runs[name] = (await control.launch_script(session, ScriptRequest(script, name, name=name))).run_id
        for run_id in runs.values():
            await until_steps(session, run_id, 5)
        proxies[0].delay_s = 0.25
        proxies[1].is_dark = True
        # What comes from the good one comes as if the others were not there.
        for _ in range(5):
            begun = time.monotonic()
            await until_steps(session, runs["good"], 5, timeout_s=4)
            assert time.monotonic() - begun < 4
        await until_steps(session, runs["slow"], 5)
        proxies[1].is_dark = False
        # Silence ends a link only after a while: this one has come through.
        await until_steps(session, runs["dark"], 5)
        proxies[0].delay_s = 0.0
        proxies[1].reset()
        # Longer than a login and a start together may take before they are given up.
        await until_steps(session, runs["dark"], 5, timeout_s=60)
        for name, run_id in runs.items():
            stopped = await control.stop(session, run_id, kill=True)
            assert stopped.state == "stopped"
            mirror = (tmp_path / "home/data/mirrors" / run_id / "train_log.jsonl").read_bytes()
            far = (tmp_path / "far/dflash-runs" / run_id / "attempts/1/output.log").read_bytes()
            assert mirror == far, name
    assert_nobody_lives_below(tmp_path / "far")


async def test_a_host_that_goes_away_leaves_the_state_as_it_was(
    box: SshServer, ssh_config: Path, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.1)
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        [spec] = hosts_by(ssh_config, box, tmp_path, {"box2": proxy.port}).values()
        monkeypatch.setattr(config, "load", lambda: config.Config(hosts={"box2": spec}))
        async with seated() as session:
            run_id = (await control.launch_script(session, ScriptRequest(script, "box2"))).run_id
            await until_steps(session, run_id, 5)
            proxy.is_refusing = True
            proxy.reset()
            async with asyncio.timeout(60):
                while session.contact("box2") is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert "no contact for" in str(session.contact("box2"))
            detail = await session.ask(lambda store: store.detail(run_id))
            assert (detail.run.state, detail.run.reason) == ("running", None)
            with pytest.raises(UnreachableError):
                await control.stop(session, run_id)
            proxy.is_refusing = False
            await session.refresh()
            await until_steps(session, run_id, 5)
            assert session.contact("box2") is None
            await control.stop(session, run_id, kill=True)
    assert_nobody_lives_below(tmp_path / "far")


def hosts_by(config_file: Path, box: SshServer, folder: Path, ports: dict[str, int]) -> dict[str, HostSpec]:
    """Hosts that are the box, each by a port of its own, with one workdir."""
    words = {"python": sys.executable, "workdir": str(folder / "far")}
    names = {name: reach_by(config_file, box, port, name) for name, port in ports.items()}
    return {name: HostSpec(kind="ssh", name=name, address=address, **words) for name, address in names.items()}


async def test_gpus_are_sampled_with_the_runs_id(
    script: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = FakeNvidiaSmi(tmp_path / "bin")
    smi.say(CARDS)
    monkeypatch.setenv("PATH", f"{smi.folder}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu_watch, "EVERY_S", 0.3)
    monkeypatch.setattr(gpu_watch, "_SOON_S", 0.1)
    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.1)
    warned: list[str] = []
    async with seated() as session:
        run_id = (await control.launch_script(session, ScriptRequest(script, "local"), warned.append)).run_id
        assert "8.8 GiB of 80.0 GiB used, owner not visible" in warned[0]
        async with asyncio.timeout(60):
            while len(seen := gpu_rows(session)) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await control.stop(session, run_id, kill=True)
        assert {row[:5] for row in seen} == {(run_id, 0, "H200", 90.0, 9000.0)}
        assert all(abs(row[5] - time.time()) < 30 for row in seen) and len({row[5] for row in seen}) >= 3
        before = gpu_rows(session)
    assert (home / "data/mirrors" / run_id / "gpus.jsonl").read_text().count("\n") == len(before)
    assert_nobody_lives_below(home)


def gpu_rows(session: Session) -> list[tuple[object, ...]]:
    sql = "select run, gpu, name, utilization_pct, memory_used_mib, time from gpus order by time"
    with session.store.query(sql) as answer:
        return [tuple(row) for row in answer.rows()]


async def test_a_run_that_is_forgotten_while_it_is_followed_stays_forgotten_until_it_is_found_again(
    script: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dflash_tui import adoption

    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.02)
    async with seated() as session:
        run_id = (await control.launch_script(session, ScriptRequest(script, "local"))).run_id
        await until_steps(session, run_id, 3)
        for _ in range(3):
            await control.forget(session, run_id)
            for _ in range(5):
                await asyncio.sleep(0.05)
                assert await session.ask(lambda store: store.runs()) == []
                assert not (home / "data/mirrors" / run_id).exists()
            assert session.contact("local") is None
            scanned = await adoption.scan(session, "local", lambda sentence: None)
            assert (scanned.brought, scanned.trouble) == ((run_id,), None)
            await until_steps(session, run_id, 3)
        await control.stop(session, run_id, kill=True)
        mirror = home / "data/mirrors" / run_id / "train_log.jsonl"
        output = (home / "data/work/dflash-runs" / run_id / "attempts/1/output.log").read_bytes()
        assert mirror.read_bytes() == output
        # Also of one that writes no more, so that nothing that comes could show that its mirror is another one.
        await control.forget(session, run_id)
        scanned = await adoption.scan(session, "local", lambda sentence: None)
        assert (scanned.brought, scanned.trouble, mirror.read_bytes() == output) == ((run_id,), None, True)
    assert_nobody_lives_below(home)


async def test_an_answer_about_a_forgotten_run_says_nothing_of_the_one_that_is_found_again(
    script: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host was asked before the run was forgotten, and answers when it was found again: it is over, nothing new."""
    from dflash_tui import adoption, collect

    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.02)
    num_over = 0
    is_asked, may_answer = asyncio.Event(), asyncio.Event()
    sweep = collect.sweep

    async def hold(*args: Any, **kwargs: Any) -> dict[str, Heard | HostError]:
        nonlocal num_over
        heard = await sweep(*args, **kwargs)
        num_over += any(isinstance(what, Heard) and what.status.state.is_over for what in heard.values())
        # The first one brings its last lines and its end.
        if num_over == 2:
            is_asked.set()
            await may_answer.wait()
        elif num_over == 3:
            # It would mend what that answer did, if it came before anybody looked.
            await asyncio.sleep(1)
        return heard

    monkeypatch.setattr(collect, "sweep", hold)
    async with seated() as session:
        run_id = (await control.launch_script(session, ScriptRequest(script, "local"))).run_id
        await until_steps(session, run_id, 3)
        await control.stop(session, run_id, kill=True)
        async with asyncio.timeout(60):
            await is_asked.wait()
        await control.forget(session, run_id)
        scanning = asyncio.create_task(adoption.scan(session, "local", lambda sentence: None))
        while not await session.ask(lambda store: store.runs()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        # By then its collector knows that it is followed anew.
        await asyncio.sleep(0.5)
        may_answer.set()
        scanned = await scanning
        output = (home / "data/work/dflash-runs" / run_id / "attempts/1/output.log").read_bytes()
        mirror = home / "data/mirrors" / run_id / "train_log.jsonl"
        assert (scanned.brought, scanned.trouble, mirror.read_bytes() == output) == ((run_id,), None, True)
    assert_nobody_lives_below(home)


def test_a_host_that_somebody_adds_meanwhile_is_known(home: Path) -> None:
    session = Session(config.load(), lambda run_id: None)
    config.Addition("later", {"kind": "ssh", "address": "box"}).write()
    assert session._spec("later").address == "box"
    with pytest.raises(UsageError, match="no host named 'never'"):
        session._spec("never")

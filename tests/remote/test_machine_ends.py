"""A machine that goes while its runs are followed: restarted, without power, behind a link that is cut for minutes.

What is known of a run stays as it was until its machine answers; then it is the truth, and no line is lost or doubled.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dflash_tui import collect, control
from dflash_tui.config import Config, HostSpec
from dflash_tui.errors import ExitCode, UnreachableError
from dflash_tui.hosts.ssh import connect
from dflash_tui.requests import ScriptRequest
from dflash_tui.runs import Run
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.watch import Session

from ..cli.conftest import dflash
from ..pvehost.fixtures import python_folders, reach_by, stanza
from ..pvehost.proxy import FaultProxy
from ..pvehost.pve import PveHost, missing_pve
from ..pvehost.sshd import SshServer
from .far_side import assert_nobody_lives_below, until

ENDLESS = (
    "import itertools, time\nfor n in itertools.count(1):\n    print({'step': n, 'loss': 1.0})\n    time.sleep(0.02)\n"
)

# Starts programs until one has the pid, or has passed it.
HUNT = """
import subprocess, sys
while True:
    p = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if p.pid >= int(sys.argv[1]):
        break
    p.kill()
    p.wait()
print(p.pid)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.pace.VISIBLE_S", 0.1)
    monkeypatch.setattr(collect, "BACKOFF_MAX_S", 0.3)


@pytest.fixture(scope="module")
def power(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PveHost]:
    """A Proxmox host that tests may switch off."""
    if reason := missing_pve():
        pytest.skip(f"REAL SSH IS NOT TESTED HERE: {reason}")
    host = PveHost.make(tmp_path_factory.mktemp("power"), binds=python_folders())
    host.add_container(200)
    host.start()
    yield host
    host.stop()


@pytest.fixture
def container(power: PveHost, ssh_config: Path) -> HostSpec:
    with ssh_config.open("a") as file:
        file.write(stanza("power", power, "root"))
    power.pct("start", "200")
    python, workdir = sys.executable, "/workspace"
    return HostSpec(kind="proxmox", name="ct", address="power", vmid=200, python=python, workdir=workdir)


@asynccontextmanager
async def following(spec: HostSpec, folder: Path) -> AsyncIterator[tuple[Session, str]]:
    """A session, and a run on that machine that has logged."""
    script = folder / "endless.py"
    script.write_text(ENDLESS)
    session = Session(Config(hosts={spec.name: spec}), lambda run_id: None)
    await session.open()
    try:
        run_id = (await control.launch_script(session, ScriptRequest(script, spec.name))).run_id
        await until(lambda: steps(session, run_id) > 5, "it is followed", 30)
        yield session, run_id
    finally:
        await session.close()


def steps(session: Session, run_id: str) -> int:
    with session.store.query("select count(distinct step) from steps where run = $run", {"run": run_id}) as answer:
        return int(answer.rows()[0][0])


def state(session: Session, run_id: str) -> Run:
    return session.store.detail(run_id).run


async def silence(session: Session, host: str, words: str) -> str:
    await until(lambda: words in str(session.contact(host)), f"{host} is silent: {words}", 40)
    return str(session.contact(host))


async def is_whole(session: Session, run_id: str, far: Path) -> None:
    """The mirror is the log, and each of its lines is in the tables once."""
    log = far.read_bytes()
    await until(lambda: Mirror(run_id).path(TRAIN_LOG).read_bytes() == log, "all of the log is here", 20)
    with session.store.query(
        "select count(*), count(distinct step) from records where run = $r", {"r": run_id}
    ) as found:
        assert found.rows() == [(log.count(b"\n"), log.count(b"\n"))]


@pytest.mark.parametrize("end", ["container-restarted", "host-rebooted"])
async def test_a_run_is_lost_when_its_machine_says_so_and_not_before(
    power: PveHost, container: HostSpec, tmp_path: Path, end: str
) -> None:
    async with following(container, tmp_path) as (session, run_id):
        if end == "host-rebooted":
            power.stop()
            said = await silence(session, "ct", "refuses connections")
        else:
            power.pct("stop", "200")
            said = await silence(session, "ct", "container 200 on power is stopped; start it with `pct start 200`")
        assert said.startswith("no contact for ") and ", next try in " in said
        assert (state(session, run_id).state, state(session, run_id).reason) == ("running", None)
        with pytest.raises(UnreachableError) as caught:
            await control.stop(session, run_id)
        assert caught.value.exit_code is ExitCode.UNREACHABLE
        # Another process is told the same, with the same state.
        [told] = (await asyncio.to_thread(dflash, "runs", "--json")).json()
        assert (told["run_id"], told["state"]) == (run_id, "running") and told["no_contact_s"] > 0
        if end == "host-rebooted":
            power.change_boot_id()
            power.start()
        power.pct("start", "200")
        await session.refresh()
        await until(lambda: state(session, run_id).state == "lost", "it is lost", 30)
        assert state(session, run_id).reason == end
        assert session.contact("ct") is None
        note = str((await asyncio.to_thread(dflash, "status", run_id, "--json")).json()["note"])
        assert ("container" if end == "container-restarted" else "machine") in note and "resume it" in note
        far = power.rootfs(200) / "workspace/dflash-runs" / run_id / "attempts"
        await is_whole(session, run_id, far / "1/output.log")
        before = steps(session, run_id)
        resumed = await control.resume(session, run_id)
        assert (resumed.state, resumed.attempt) == ("running", 2)
        await until(lambda: steps(session, run_id) > 0, "it logs again", 30)
        stopped = await control.stop(session, run_id, kill=True)
        assert (stopped.state, stopped.attempt) == ("stopped", 2) and before > 5
    power.pct("stop", "200")


async def test_a_link_that_is_cut_for_minutes_costs_no_line(
    box: SshServer, ssh_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is closed: no byte comes through, and the keepalive finds out."""
    monkeypatch.setattr(connect, "KEEPALIVE_S", 0.1)
    monkeypatch.setattr(connect, "KEEPALIVE_COUNT", 2)
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        words = {"python": sys.executable, "workdir": str(tmp_path / "far")}
        spec = HostSpec(kind="ssh", name="far", address=reach_by(ssh_config, box, proxy.port), **words)
        async with following(spec, tmp_path) as (session, run_id):
            far = tmp_path / "far/dflash-runs" / run_id / "attempts/1/output.log"
            proxy.is_dark = True
            size = far.stat().st_size
            await silence(session, "far", "no contact for")
            await until(lambda: far.stat().st_size > size + 1000, "the run goes on", 30)
            assert (state(session, run_id).state, state(session, run_id).reason) == ("running", None)
            proxy.is_dark = False
            proxy.reset()
            await session.refresh()
            await until(lambda: session.contact("far") is None, "it answers again", 30)
            seen = steps(session, run_id)
            await until(lambda: steps(session, run_id) > seen, "it is followed again", 30)
            await control.stop(session, run_id, kill=True)
            await is_whole(session, run_id, far)
    assert_nobody_lives_below(tmp_path / "far")


async def test_a_pid_that_somebody_else_has_now_is_not_stopped(
    container: HostSpec, power: PveHost, tmp_path: Path
) -> None:
    """The container is started again, and a stranger gets the pid that the run had: a stop of the run ends nobody."""
    async with following(container, tmp_path) as (session, run_id):
        pid = (await session.ask(lambda store: store.detail(run_id))).pid
        power.pct("stop", "200")
        await silence(session, "ct", "is stopped")
        power.pct("start", "200")
        # Inside, pids begin anew: somebody gets this one soon.
        found = power.pct("exec", "200", "--", sys.executable, "-c", HUNT, str(pid))
        stranger = int(found.stdout)
        if stranger != pid:
            pytest.skip(f"the pid {pid} was passed over: {stranger}")
        await session.refresh()
        await until(lambda: state(session, run_id).state == "lost", "it is lost", 30)
        assert (await control.stop(session, run_id, kill=True)).state == "lost"
        assert power.pct("exec", "200", "--", "kill", "-0", str(stranger)).returncode == 0
    power.pct("stop", "200")

"""The session over real SSH servers: a key that is asked for or has changed, a host that goes silent, and its run."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dflash_tui import config, control, paths
from dflash_tui.collect import note_run
from dflash_tui.hosts import journal
from dflash_tui.hosts.ssh import keys as private_keys
from dflash_tui.requests import ScriptRequest
from dflash_tui.runs import RunEvent, RunRecord
from dflash_tui.ui.app import DflashApp
from dflash_tui.ui.seat import SessionSeat

from ..pvehost.fixtures import stanza
from ..pvehost.proxy import FaultProxy
from ..pvehost.pve import PveHost
from ..pvehost.sshd import SshServer, missing_sshd, write_known_hosts
from .cockpit import screen_text, types, until

pytestmark = pytest.mark.slow

PASSPHRASE = "ein Wort, 2"
PATIENCE_S = 90.0
STEPS = """
import itertools, time
for step in itertools.count(1):
    print({"step": step, "loss": 1.0 / step}, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A server of one's own: to be stopped, and started with another key."""
    if reason := missing_sshd():
        pytest.skip(f"REAL SSH IS NOT TESTED HERE: {reason}")
    one = SshServer.make(tmp_path / "sshd")
    one.start()
    yield one
    if one.process:
        one.end_sessions()
        one.stop()


@asynccontextmanager
async def hosts_screen(home: Path, toml: str) -> AsyncIterator[Pilot[None]]:
    """A real session with these hosts, at the Hosts screen, the cursor on the second line."""
    file = home / "config/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(toml)
    app = DflashApp(lambda advanced: SessionSeat(config.load(), advanced))
    try:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await shows(pilot, "No runs yet.")
            await pilot.press("3")
            await shows(pilot, "local  this machine")
            await pilot.press("j")
            yield pilot
    finally:
        await app.seat.close()


def ssh_host(name: str, tmp_path: Path) -> str:
    there = f'python = "{sys.executable}"\nworkdir = "{tmp_path}/far"\n'
    return f'[hosts.{name}]\nkind = "ssh"\naddress = "{name}"\n{there}'


def keygen(*words: str | Path) -> str:
    argv = ["ssh-keygen", *map(str, words)]
    return subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


async def shows_no(pilot: Pilot[None], words: str) -> None:
    await until(pilot, lambda: words not in screen_text(pilot.app), f"{words!r} gone from the screen", PATIENCE_S)


async def shows(pilot: Pilot[None], *words: str) -> None:
    """`sees`, with the patience that a real machine takes, whatever else this one does."""
    for word in words:
        await until(pilot, lambda word=word: word in screen_text(pilot.app), f"{word!r} on the screen", PATIENCE_S)


def line_of(pilot: Pilot[None], name: str) -> str:
    return next((line for line in screen_text(pilot.app).splitlines() if name in line), "")


async def test_an_unknown_key_is_asked_for_once_by_a_key_press(
    box: SshServer, ssh_config: Path, home: Path, tmp_path: Path
) -> None:
    with ssh_config.open("a") as file:
        file.write(stanza("new", box, box.user, UserKnownHostsFile="/dev/null"))
    async with hosts_screen(home, ssh_host("new", tmp_path)) as pilot:
        await shows(pilot, "▲ key unknown", "the host key of", "c connects, and asks")
        assert "is not known yet\n" not in screen_text(pilot.app), "nobody is asked before he does something"
        await pilot.press("c")
        await shows(pilot, keygen("-lf", box.keys / "host.pub").split()[1], "type yes")
        await types(pilot, "yes")
        await pilot.press("enter")
        await shows(pilot, "✓ reach", "answers in", f"{sys.executable} is Python", "● reachable")
        known = paths.known_hosts_file().read_text()
        assert f"[127.0.0.1]:{box.port} {(box.keys / 'host.pub').read_text().split()[0]}" in known
        await pilot.press("c")
        await shows(pilot, "◌ checking")
        await shows(pilot, "✓ reach")
        await pilot.press("tilde")
        await shows(pilot, "new", "serve", "✓ 0")
    assert {command.host for command in journal.commands()} >= {"new"}


@pytest.fixture
def vault(box: SshServer, ssh_config: Path, tmp_path: Path) -> Path:
    """The host `vault` of ~/.ssh/config: the one key that it takes is locked."""
    pytest.importorskip("bcrypt", reason="asyncssh opens no locked key without it; `make test` installs it")
    private_keys._unlocked.clear()
    key = tmp_path / "locked"
    shutil.copy(box.keys / "client", key)
    keygen("-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", key)
    with ssh_config.open("a") as file:
        file.write(stanza("vault", box, box.user, IdentityFile=f'"{key}"'))
    return key


async def test_a_locked_key_is_opened_inside_the_session(vault: Path, home: Path, tmp_path: Path) -> None:
    async with hosts_screen(home, ssh_host("vault", tmp_path)) as pilot:
        await shows(pilot, "▲ auth failed", "is locked by a passphrase")
        await pilot.press("c")
        for words in ("wrong", PASSPHRASE):
            await shows(pilot, "Passphrase of", "enter open the key")
            if words != "wrong":
                await shows(pilot, "That does not open it.")
            await types(pilot, words)
            await pilot.press("enter")
        await shows(pilot, "✓ reach", "● reachable")
        await shows_no(pilot, "Passphrase of")
        assert PASSPHRASE not in screen_text(pilot.app)


async def test_a_live_run_behind_a_locked_key_asks_once_by_itself(vault: Path, home: Path, tmp_path: Path) -> None:
    async with hosts_screen(home, ssh_host("vault", tmp_path)) as pilot:
        session = pilot.app.seat._session  # type: ignore[attr-defined]
        record, running = RunRecord("r", "r", "train", host="vault", created=1.0), RunEvent(1.0, "state", "running")
        await session.ask(partial(note_run, record, running))
        await session.refresh()
        await shows(pilot, "Passphrase of")
        await pilot.press("escape")
        await shows(pilot, "next try in", "lets none of our keys in")
        await session.refresh()
        await pilot.press("1")
        await shows(pilot, "1 running")
        assert "Passphrase of" not in screen_text(pilot.app), "a no is a no until something is done by hand"
        await pilot.press("3", "c")
        await shows(pilot, "Passphrase of")
        await types(pilot, PASSPHRASE)
        await pilot.press("enter")
        await shows(pilot, "✓ reach")
        await pilot.press("1")
        await shows(pilot, "○ absent")


async def test_a_host_that_goes_silent_says_since_when_and_one_with_another_key_is_refused(
    server: SshServer, ssh_config: Path, home: Path, tmp_path: Path
) -> None:
    ssh_config.write_text(stanza("gpu", server, server.user))
    async with hosts_screen(home, ssh_host("gpu", tmp_path)) as pilot:
        await shows(pilot, "ssh gpu, python")
        await until(pilot, lambda: screen_text(pilot.app).count("● reachable") == 2, "both reachable", PATIENCE_S)
        server.end_sessions()
        server.stop()
        await pilot.press("c")
        await shows(pilot, "✗ unreachable", "no contact for", "refuses connections")
        shutil.copy(server.keys / "other", server.keys / "host")
        shutil.copy(server.keys / "other.pub", server.keys / "host.pub")
        server.start()
        await pilot.press("c")
        await shows(pilot, "▲ key changed", "HAS CHANGED: it shows")
        assert screen_text(pilot.app).count("SHA256:") == 2


async def test_containers_hang_under_their_node_and_each_says_how_it_stands(pve_box: PveHost, home: Path) -> None:
    toml = "".join(f'[hosts.ct{n}]\nkind = "proxmox"\naddress = "pve"\nvmid = {n}\n' for n in (200, 201))
    async with hosts_screen(home, toml) as pilot:
        await shows(pilot, "pve ", "├ ct200", "├ ct201", "├ 202 train202", "container 201 o")
        await until(pilot, lambda: line_of(pilot, "├ ct200").count("● reachable") == 1, "ct200 reachable", PATIENCE_S)
        await pilot.press("j", "j")
        await shows(pilot, "container 201 (train201) on pve", "start it with `pct start 201`")
        pve_box.set_lock(200, "backup")
        try:
            await pilot.press("k", "c")
            await shows(pilot, "▲ container", "container 200 (train200) is running, and locked (backup)")
        finally:
            pve_box.set_lock(200, None)


async def test_a_cut_link_is_told_on_its_runs_which_stay_as_they_were(
    box: SshServer, ssh_config: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dflash_tui.ui.states.SILENT_S", 2.0)
    script, known = tmp_path / "steps.py", tmp_path / "known"
    script.write_text(STEPS)
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        write_known_hosts(known, proxy.port, box.keys / "host.pub")
        ssh_config.write_text(stanza("gpu", box, box.user, Port=str(proxy.port), UserKnownHostsFile=f'"{known}"'))
        async with hosts_screen(home, ssh_host("gpu", tmp_path)) as pilot:
            session = pilot.app.seat._session  # type: ignore[attr-defined]
            record = await control.launch_script(session, ScriptRequest(script, "gpu", name="mine"))
            try:
                await pilot.press("1")
                await shows(pilot, "● running", "mine")
                await pilot.press("enter")
                # A first contact has been noted: from then on a silence has a beginning.
                await until(pilot, lambda: "  step " in screen_text(pilot.app).splitlines()[0], "a step", PATIENCE_S)
                await shows(pilot, "  seen ")
                proxy.is_refusing = True
                proxy.reset()
                await shows(pilot, "next try in", "  no contact for ")
                assert "● running" in screen_text(pilot.app).splitlines()[0]
                await pilot.press("escape")
                await shows(pilot, "1 running · 1 without contact", "no contact for")
                await pilot.press("3")
                await until(
                    pilot, lambda: line_of(pilot, "▸ gpu").count("1?") == 1, "one run, by what is known", PATIENCE_S
                )
                proxy.is_refusing = False
                await pilot.press("c")
                await shows(pilot, "✓ reach", "● reachable")
                await pilot.press("1")
                await shows_no(pilot, "without contact")
            finally:
                proxy.is_refusing = False
                await control.stop(session, record.run_id, kill=True)


async def test_an_address_that_is_none_is_a_sentence_and_delays_no_other(home: Path) -> None:
    async with hosts_screen(home, '[hosts.odd]\nkind = "ssh"\naddress = "a b"\n') as pilot:
        await shows(pilot, "✗ unreachable", "hosts.odd.address = 'a b': must be a name of ~/.ssh/config", "● reachable")
        await pilot.press("s")
        await shows(pilot, "user@host:port or [v6]:port")
        await pilot.press("c")
        await until(pilot, lambda: line_of(pilot, "▸ odd").count("✗ unreachable") == 1, "checked", PATIENCE_S)
        await pilot.press("k")
        await shows(pilot, "local  this machine")


async def test_keys_answer_while_no_host_does(
    box: SshServer, ssh_config: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FaultProxy.to(("127.0.0.1", box.port)) as proxy:
        # Longer than the test takes on any machine.
        monkeypatch.setattr("dflash_tui.machines.LOOK_S", 300.0)
        proxy.is_dark = True
        names = [f"dark{number}" for number in range(4)]
        ssh_config.write_text(
            "".join(stanza(name, box, box.user, Port=str(proxy.port), ConnectTimeout="300") for name in names)
        )
        async with hosts_screen(home, "".join(ssh_host(name, tmp_path) for name in names)) as pilot:
            await until(pilot, lambda: screen_text(pilot.app).count("◌ looking") == 4, "all four being looked at")
            await pilot.press("j", "j", "j")
            await shows(pilot, "▸ dark3", "ssh dark3")
            await pilot.press("1", "3", "tilde")
            await shows(pilot, "Commands of this session", "● running")
            await pilot.press("escape")
            assert screen_text(pilot.app).count("◌ looking") == 4, "none has answered meanwhile"

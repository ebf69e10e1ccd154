"""Pictures of the Hosts screen and its dialogs, kept as SVG: look at each one before it is accepted."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dflash_tui.hosts.person import HostKey

from .cockpit import sees
from .scripted_hosts import make_hosts_app

Keys = Callable[[Pilot[None]], Awaitable[None]]
LARGE, SMALL = (120, 40), (80, 24)


def on_hosts(*keys: str, until: str) -> Keys:
    async def run(pilot: Pilot[None]) -> None:
        await sees(pilot, "Runs")
        await pilot.press("3")
        await sees(pilot, "205 [b]", "▲ key changed", "✗ unreachable", "● reachable", "without contact")
        await pilot.press(*keys)
        await sees(pilot, until)

    return run


@pytest.mark.parametrize("size", [LARGE, SMALL], ids="{0[0]}x{0[1]}".format)
def test_hosts(snap_compare: Any, size: tuple[int, int]) -> None:
    keys = on_hosts("j", until="NVIDIA H200: 69.3 GiB")
    assert snap_compare(make_hosts_app(), terminal_size=size, run_before=keys)


def test_hosts_checked_light(snap_compare: Any) -> None:
    keys = on_hosts("t", "j", "enter", "j", "c", until="3,600 s behind ours")
    assert snap_compare(make_hosts_app(), terminal_size=LARGE, run_before=keys)


def test_hosts_without_colour(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    keys = on_hosts("j", "j", until="no contact for 41 s: no answer from root@dead")
    assert snap_compare(make_hosts_app(), terminal_size=SMALL, run_before=keys)


def test_command_log(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    keys = on_hosts("tilde", "j", "j", until="/usr/sbin/pct exec 200 -- rm 'a b' --token '***'")
    assert snap_compare(make_hosts_app(), terminal_size=LARGE, run_before=keys)


def test_adding_a_host(snap_compare: Any, ssh_config: Path) -> None:
    ssh_config.write_text("Host gpu7 gpu8\n  User root\nHost *\n")
    keys = on_hosts("a", until="from ~/.ssh/config")
    assert snap_compare(make_hosts_app(), terminal_size=SMALL, run_before=keys)


def test_an_unknown_host_key(snap_compare: Any) -> None:
    app = make_hosts_app()

    async def ask(pilot: Pilot[None]) -> None:
        await on_hosts(until="gpu2")(pilot)
        fingerprint = "SHA256:SNuXLEGnz3nZ0B0wOZfBy9eYHcVJvLbrwEK8kTCkfVY"
        key = HostKey("root@gpu7:2222", "ssh-ed25519", fingerprint)
        app.run_worker(app.seat.person.trusts(key), exit_on_error=False)
        await sees(pilot, "is not known yet", fingerprint)

    assert snap_compare(app, terminal_size=SMALL, run_before=ask)

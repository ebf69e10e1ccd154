"""The Hosts screen, adding one, its key, and what was run on hosts."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from textual.pilot import Pilot

from dflash_tui.hosts.person import HostKey
from dflash_tui.ui.app import DflashApp

from ..cockpit import sees
from ..pictures import DARK, LARGE, LIGHT, SMALL, Scene
from ..scripted_hosts import make_hosts_app

FINGERPRINT = "SHA256:SNuXLEGnz3nZ0B0wOZfBy9eYHcVJvLbrwEK8kTCkfVY"


def hosts() -> AbstractContextManager[DflashApp]:
    return nullcontext(make_hosts_app())


def on_hosts(*keys: str, until: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def play(pilot: Pilot[None]) -> None:
        await sees(pilot, "Runs")
        await pilot.press("3")
        await sees(pilot, "205 [b]", "▲ key changed", "✗ unreachable", "● reachable", "without contact")
        await pilot.press(*keys)
        await sees(pilot, until)

    return play


async def ask_for_trust(pilot: Pilot[None]) -> None:
    await on_hosts(until="gpu2")(pilot)
    key = HostKey("root@gpu7:2222", "ssh-ed25519", FINGERPRINT)
    pilot.app.run_worker(pilot.app.seat.person.trusts(key), exit_on_error=False)  # type: ignore[attr-defined]
    await sees(pilot, "is not known yet", FINGERPRINT)


SCENES = (
    Scene("hosts", hosts, on_hosts("j", until="H200: 69.3 GiB")),
    Scene("hosts-checked", hosts, on_hosts("j", "c", until="3,600 s behind ours"), only=((LARGE, LIGHT),)),
    Scene("hosts-add", hosts, on_hosts("a", until="from ~/.ssh/config"), only=((SMALL, DARK), (SMALL, LIGHT))),
    Scene("hosts-unknown-key", hosts, ask_for_trust, only=((SMALL, DARK),)),
    Scene(
        "hosts-commands", hosts, on_hosts("tilde", "j", "j", until="-- rm 'a b' --token '***'"), only=((LARGE, DARK),)
    ),
)

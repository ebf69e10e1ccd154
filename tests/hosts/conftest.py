"""The three ways to reach a machine, behind one face."""

import secrets
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from dflash_tui.config import HostSpec
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Host

from ..pvehost.pve import PveHost
from ..remote.far_side import assert_nobody_lives_below

# A folder whose name breaks every careless quote.
FOLDER = "my runs δ 1 $HOME 'x'"

SPECS = {
    "local": HostSpec(kind="local", name="local"),
    "ssh": HostSpec(kind="ssh", name="box", address="box"),
    "proxmox": HostSpec(kind="proxmox", name="ct", address="pve", vmid=200),
}


@dataclass(frozen=True)
class Reach:
    """`far` is a folder on the machine, `here` the same one as the test sees it."""

    host: Host
    kind: str
    far: str
    here: Path


@pytest.fixture(params=SPECS)
async def reach(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reach]:
    kind = request.param
    here, far = tmp_path / "far", str(tmp_path / "far")
    if kind == "ssh":
        request.getfixturevalue("box")
    if kind == "proxmox":
        pve: PveHost = request.getfixturevalue("pve_box")
        far = f"/workspace/{secrets.token_hex(4)}"
        here = pve.rootfs(200) / far[1:]
    here.mkdir()
    host = open_host(SPECS[kind])
    yield Reach(host, kind, far, here)
    await host.close()


@pytest.fixture
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches return at once."""
    monkeypatch.setattr("dflash_tui.remote.launch.SETTLE_S", 0)


@pytest.fixture
async def spec(reach: Reach) -> AsyncIterator[HostSpec]:
    """The same machine with a workdir of this test's own, where nobody lives when it has ended."""
    yield working_in(SPECS[reach.kind], f"{reach.far}/{FOLDER}")
    assert_nobody_lives_below(Path(reach.far))


def working_in(spec: HostSpec, workdir: str) -> HostSpec:
    return msgspec.structs.replace(spec, python=sys.executable, workdir=workdir)

"""The short form of `chaos.py`: one trainer however a launch is cut, a mirror that is the log, an end that is true."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dflash_tui import collect

from ..pvehost.pve import PveHost
from ..pvehost.sshd import SshServer
from .chaos import Far, behind_a_proxy, cut_launches, kill_readers, race_stops

pytestmark = pytest.mark.slow

TIMES = 6


@pytest.fixture(params=["ssh", "proxmox"])
async def far(request: pytest.FixtureRequest, ssh_config: Path, tmp_path: Path) -> AsyncIterator[Far]:
    server: SshServer | PveHost = request.getfixturevalue("ssh_server" if request.param == "ssh" else "pve")
    async with behind_a_proxy(request.param, server, ssh_config, tmp_path / "far") as found:
        yield found


async def test_a_launch_that_is_cut_off_starts_one_trainer(far: Far) -> None:
    assert (await cut_launches(far, TIMES, random.Random())).total() == TIMES


async def test_a_mirror_is_the_log_whoever_is_killed(far: Far, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "BACKOFF_MAX_S", 0.1)
    told = await kill_readers(far, TIMES, 20_000, 4.0, random.Random())
    assert (told["kills"], told["lines"]) == (TIMES, 20_000)


async def test_a_stop_against_an_end_is_one_of_the_two(far: Far) -> None:
    assert (await race_stops(far, 2 * TIMES, random.Random())).total() == 2 * TIMES

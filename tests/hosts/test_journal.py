"""The journal of commands: every argv on every kind of host as a person would say it, and how it ended."""

import sys
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, UnreachableError
from dflash_tui.hosts import journal, open_host
from dflash_tui.hosts.base import Exit

from ..pvehost.fixtures import stanza
from ..pvehost.sshd import SshServer
from .conftest import Reach

PCT = ("/usr/sbin/pct", "exec", "200", "--keep-env", "0", "--")


@pytest.fixture(autouse=True)
def nothing_noted() -> None:
    journal._commands.clear()


async def test_a_command_is_noted_as_it_was_asked_for_with_its_end(reach: Reach) -> None:
    argv = [sys.executable, "-c", "raise SystemExit(3)", "δ 'x'\n$(y)", ""]
    before = PCT if reach.kind == "proxmox" else ()
    channel = await reach.host.start(argv)
    [command] = journal.commands()
    assert (command.host, command.argv, command.took_s) == (reach.host.name, (*before, *argv), None)
    await channel.wait()
    await channel.close()
    assert command.end == Exit(3, None) and command.took_s is not None and command.took_s > 0
    assert command.trouble is None


async def test_whoever_leaves_learns_no_end(reach: Reach) -> None:
    channel = await reach.host.start(["cat"])
    await channel.close()
    [command] = journal.commands()
    assert command.end is None and command.took_s is not None


async def test_secrets_are_masked_and_a_word_as_long_as_a_file_is_cut(reach: Reach) -> None:
    await reach.host.run(["true", "--api-key", "s3cr3t", "HF_TOKEN=s3cr3t", "hf_abcdefgh12345678", "x" * 90_000])
    [command] = journal.commands()
    assert command.argv[-5:-1] == ("--api-key", "***", "HF_TOKEN=***", "***")
    assert len(command.argv[-1]) < 1100


async def test_what_did_not_start_says_why(box: SshServer, ssh_config: Path) -> None:
    with ssh_config.open("a") as file:
        file.write(stanza("down", box, box.user, Port="1"))
    host = open_host(HostSpec(kind="ssh", name="down", address="down"))
    with pytest.raises(UnreachableError):
        await host.start(["true"])
    with pytest.raises(HostError):
        await open_host(HostSpec(kind="local", name="local")).start(["/nowhere/program"])
    down, local = journal.commands()
    assert "refuses connections" in (down.trouble or "") and down.took_s is not None
    assert "cannot start /nowhere/program" in (local.trouble or "")


async def test_the_journal_is_bounded() -> None:
    host = open_host(HostSpec(kind="local", name="local"))
    channel = await host.start(["true", *["word"] * 1000])
    await channel.close()
    [first] = journal.commands()
    assert len(first.argv) == 101 and first.argv[-1] == "... and 901 words more"
    for _ in range(journal.NUM_KEPT):
        journal._begin("local", ["true"])
    assert len(journal.commands()) == journal.NUM_KEPT and first not in journal.commands()
    numbers = [command.number for command in journal.commands()]
    assert numbers == sorted(set(numbers))

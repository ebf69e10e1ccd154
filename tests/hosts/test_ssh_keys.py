"""Host keys and private keys: what is asked, what is refused, what is remembered, and the sentence for each."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.config import HostSpec
from dflash_tui.errors import AuthFailedError, ExitCode, HostKeyChangedError, HostKeyError, HostKeyUnknownError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.person import HostKey, introduce
from dflash_tui.hosts.ssh import keys as private_keys

from ..pvehost.fixtures import stanza
from ..pvehost.sshd import SshServer, make_key, write_known_hosts

PASSPHRASE = "ein Wort, 2 wörter"


@dataclass
class Scripted:
    """A person who gives these answers and notes what was asked."""

    trust: bool = True
    words: list[str | None] = field(default_factory=list)
    keys: list[HostKey] = field(default_factory=list)
    files: list[tuple[str, bool]] = field(default_factory=list)

    async def trusts(self, key: HostKey) -> bool:
        self.keys.append(key)
        await asyncio.sleep(0.05)
        return self.trust

    async def passphrase(self, key_file: str, *, is_repeated: bool) -> str | None:
        self.files.append((key_file, is_repeated))
        return self.words.pop(0)


@pytest.fixture
def person() -> Iterator[Scripted]:
    one = Scripted()
    introduce(one)
    yield one
    introduce(None)


@pytest.fixture(autouse=True)
def nothing_unlocked() -> None:
    private_keys._unlocked.clear()


@pytest.fixture
def server(ssh_server: SshServer, ssh_config: Path) -> SshServer:
    """Known by no key yet."""
    known = ssh_config.parent / "known_hosts"
    ssh_config.write_text(stanza("box", ssh_server, ssh_server.user, UserKnownHostsFile=f'"{known}"'))
    return ssh_server


def keygen(*words: str | Path) -> str:
    """What OpenSSH itself makes of a key, or of a known_hosts file."""
    return subprocess.run(["ssh-keygen", *words], check=True, capture_output=True, text=True).stdout


def fingerprint(key: Path) -> str:
    return keygen("-lf", key).split()[1]


async def reach(name: str = "box", address: str = "box") -> None:
    host = open_host(HostSpec(kind="ssh", name=name, address=address))
    try:
        assert (await host.run(["echo", "in"])).stdout == b"in\n"
    finally:
        await host.close()


async def test_an_unknown_key_without_a_person_is_refused_with_its_fingerprint(server: SshServer) -> None:
    """case65."""
    with pytest.raises(HostKeyUnknownError) as caught:
        await reach()
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert fingerprint(server.keys / "host.pub") in str(caught.value)
    assert f"127.0.0.1]:{server.port} is not known yet" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not paths.known_hosts_file().exists()


async def test_an_unknown_key_is_asked_for_once_and_kept_in_our_own_file(
    server: SshServer, ssh_config: Path, person: Scripted
) -> None:
    await asyncio.gather(*(reach(name) for name in ("a", "b", "c")))
    [asked] = person.keys
    assert (asked.kind, asked.fingerprint) == ("ssh-ed25519", fingerprint(server.keys / "host.pub"))
    assert asked.where == f"{server.user}@[127.0.0.1]:{server.port}"
    await reach()
    introduce(None)
    await reach()
    assert len(person.keys) == 1
    # OpenSSH reads the same from it, and the person's own file was not touched.
    assert "found" in keygen("-F", f"[127.0.0.1]:{server.port}", "-f", paths.known_hosts_file())
    assert {path.name for path in ssh_config.parent.iterdir()} == {"config"}


async def test_a_key_that_the_person_does_not_accept_is_refused(server: SshServer, person: Scripted) -> None:
    person.trust = False
    with pytest.raises(HostKeyUnknownError, match="was not accepted"):
        await reach()
    assert not paths.known_hosts_file().exists()


@pytest.mark.parametrize("place", ["the person's file", "our file"])
async def test_a_changed_key_is_refused_with_both_fingerprints_and_never_asked(
    server: SshServer, ssh_config: Path, person: Scripted, place: str
) -> None:
    """case65."""
    ours = place == "our file"
    file = paths.known_hosts_file() if ours else ssh_config.parent / "known_hosts"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_known_hosts(file, server.port, server.keys / "other.pub")
    before = file.read_bytes()
    with pytest.raises(HostKeyChangedError) as caught:
        await reach()
    words = str(caught.value)
    assert fingerprint(server.keys / "host.pub") in words and fingerprint(server.keys / "other.pub") in words
    assert "HAS CHANGED" in words and "ssh-keygen -R" in words
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert not person.keys
    assert file.read_bytes() == before


async def test_a_key_of_another_kind_than_the_one_on_file_is_a_change(
    server: SshServer, ssh_config: Path, person: Scripted, tmp_path: Path
) -> None:
    ecdsa = tmp_path / "ecdsa"
    keygen("-q", "-t", "ecdsa", "-N", "", "-f", ecdsa)
    write_known_hosts(ssh_config.parent / "known_hosts", server.port, Path(f"{ecdsa}.pub"))
    with pytest.raises(
        HostKeyChangedError, match=r"shows ssh-ed25519 SHA256:.* on file is ecdsa-sha2-nistp256 SHA256:"
    ):
        await reach()
    assert not person.keys


async def test_a_revoked_key_is_refused(server: SshServer, ssh_config: Path, person: Scripted) -> None:
    words = (server.keys / "host.pub").read_text()
    (ssh_config.parent / "known_hosts").write_text(f"@revoked * {words}")
    with pytest.raises(HostKeyError, match="revoked"):
        await reach()
    assert not person.keys


async def test_known_hosts_that_are_hashed_portless_or_broken_are_read(server: SshServer, ssh_config: Path) -> None:
    file = ssh_config.parent / "known_hosts"
    right = (server.keys / "host.pub").read_text()
    write_known_hosts(file, server.port, server.keys / "host.pub")
    keygen("-q", "-H", "-f", file)
    assert "127.0.0.1" not in file.read_text()
    await reach()
    file.write_text(f"@what is this\nhalf\n\xff\n127.0.0.1 {right}")
    await reach()


async def test_a_machine_with_an_alias_is_known_by_that_alone(
    server: SshServer, ssh_config: Path, person: Scripted
) -> None:
    with ssh_config.open("a") as file:
        file.write("  HostKeyAlias the-box\n")
    await reach()
    assert paths.known_hosts_file().read_text().startswith("the-box ssh-ed25519 ")
    await reach()
    assert len(person.keys) == 1
    words = (server.keys / "other.pub").read_text()
    paths.known_hosts_file().write_text(f"the-box {words}")
    with pytest.raises(HostKeyChangedError, match="ssh-keygen -R 'the-box'"):
        await reach()


async def test_the_key_of_another_port_of_the_machine_is_no_change(
    server: SshServer, ssh_config: Path, person: Scripted
) -> None:
    other = (server.keys / "other.pub").read_text()
    (ssh_config.parent / "known_hosts").write_text(f"127.0.0.1 {other}")
    await reach()
    assert len(person.keys) == 1


async def test_a_key_that_nobody_let_in_is_one_sentence(box: SshServer, ssh_config: Path) -> None:
    ssh_config.write_text(ssh_config.read_text().replace("keys/client", "keys/other"))
    with pytest.raises(AuthFailedError) as caught:
        await reach()
    words = str(caught.value)
    assert words.startswith(f"box: {box.user}@[127.0.0.1]:{box.port} lets none of our keys in")
    assert str(box.keys / "other") in words and "ssh-copy-id" in words
    assert caught.value.exit_code is ExitCode.UNREACHABLE


@pytest.fixture
def locked(box: SshServer, ssh_config: Path, tmp_path: Path) -> Path:
    """The right key behind a passphrase, and a wrong one without in its usual place."""
    key = tmp_path / "locked key"
    key.write_bytes((box.keys / "client").read_bytes())
    key.chmod(0o600)
    keygen("-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", key)
    Path(f"{key}.pub").write_bytes((box.keys / "client.pub").read_bytes())
    make_key(ssh_config.parent / "id_ed25519")
    ssh_config.write_text(ssh_config.read_text().replace(str(box.keys / "client"), str(key)))
    return key


@pytest.fixture
def agent(locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real ssh-agent that holds the locked key, opened."""
    socket, say = tmp_path / "agent.sock", tmp_path / "say"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not socket.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        say.write_text(f"#!/bin/sh\necho '{PASSPHRASE}'\n")
        say.chmod(0o700)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        env = {**os.environ, "SSH_ASKPASS": str(say), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(["ssh-add", "-q", locked], check=True, env=env, stdin=subprocess.DEVNULL, capture_output=True)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("identities_only", ["yes", "no"])
async def test_a_locked_key_that_the_agent_holds_is_not_asked_for(
    agent: None, ssh_config: Path, person: Scripted, identities_only: str
) -> None:
    """case68."""
    ssh_config.write_text(ssh_config.read_text().replace("IdentitiesOnly yes", f"IdentitiesOnly {identities_only}"))
    await reach()
    assert not person.files


async def test_a_locked_key_without_agent_and_person_is_one_sentence(locked: Path) -> None:
    """case68."""
    with pytest.raises(AuthFailedError, match=rf"{locked} is locked by a passphrase: `ssh-add {locked}`"):
        await reach()


async def test_a_locked_key_is_asked_for_until_it_opens_and_then_no_more(locked: Path, person: Scripted) -> None:
    """case68."""
    pytest.importorskip("bcrypt", reason="asyncssh opens no locked key without it; `make test` installs it")
    person.words = ["wrong", PASSPHRASE]
    await reach()
    assert person.files == [(str(locked), False), (str(locked), True)]
    await reach()
    assert len(person.files) == 2


async def test_machines_that_take_one_locked_key_ask_for_it_once(
    locked: Path, person: Scripted, ssh_config: Path
) -> None:
    pytest.importorskip("bcrypt", reason="asyncssh opens no locked key without it; `make test` installs it")
    text = ssh_config.read_text()
    ssh_config.write_text(text + text.replace("Host box", "Host twin"))
    person.words = [PASSPHRASE]
    await asyncio.gather(reach(), reach("twin", "twin"))
    assert person.files == [(str(locked), False)]


async def test_who_does_not_know_the_passphrase_goes_on_without(locked: Path, person: Scripted) -> None:
    person.words = [None]
    with pytest.raises(AuthFailedError, match="lets none of our keys in"):
        await reach()
    person.words = ["a", "b", "c"]
    with pytest.raises(AuthFailedError, match="lets none of our keys in"):
        await reach()
    assert not person.words


async def test_an_agent_that_hangs_or_is_gone_is_no_trouble(box: SshServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/no/such/socket")
    await reach()


async def test_a_key_file_that_is_missing_is_passed_over_and_one_that_is_none_is_named(
    box: SshServer, ssh_config: Path, tmp_path: Path
) -> None:
    text = ssh_config.read_text()
    ssh_config.write_text(f"{text}  IdentityFile /no/such/key\n")
    await reach()
    (tmp_path / "rubbish").write_text("no key")
    ssh_config.write_text(text.replace(f'"{box.keys / "client"}"', f'"{tmp_path / "rubbish"}"'))
    with suppress(AuthFailedError):
        await reach()

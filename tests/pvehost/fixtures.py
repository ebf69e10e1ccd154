"""The servers that tests reach: one of each kind for the whole session, and how the session under test finds them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .pve import PveHost, missing_pve
from .sshd import SshServer, missing_sshd


def _skip(reason: str) -> None:
    # Loud: said at the end of the run by `-rs`, and here for who looks at this test alone.
    pytest.skip(f"REAL SSH IS NOT TESTED HERE: {reason}")


@pytest.fixture(scope="session")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A plain SSH server that sees this machine's files."""
    if reason := missing_sshd():
        _skip(reason)
    server = SshServer.make(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    if server.process:
        server.end_sessions()
        server.stop()


@pytest.fixture(scope="session")
def pve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PveHost]:
    """A Proxmox host: container 200 runs, 201 is stopped, 202 has a small disk, 300 lives on another node."""
    if reason := missing_pve():
        _skip(reason)
    host = PveHost.make(tmp_path_factory.mktemp("pve"), binds=python_folders())
    host.add_container(200)
    host.add_container(201)
    host.add_container(202, workspace_size="4m")
    host.add_elsewhere(300, "pve2")
    try:
        host.start()
        host.pct("start", "200")
        host.pct("start", "202")
        yield host
    finally:
        host.stop()


@pytest.fixture
def ssh_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's ~/.ssh/config, empty; no agent, and nothing of the real person's is read."""
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    config = home / ".ssh/config"
    config.touch()
    return config


@pytest.fixture
def box(ssh_server: SshServer, ssh_config: Path) -> SshServer:
    """The SSH server, known as `box` in ~/.ssh/config."""
    with ssh_config.open("a") as file:
        file.write(stanza("box", ssh_server, ssh_server.user))
    return ssh_server


@pytest.fixture
def pve_box(pve: PveHost, ssh_config: Path) -> PveHost:
    """The Proxmox host, known as `pve` in ~/.ssh/config."""
    with ssh_config.open("a") as file:
        file.write(stanza("pve", pve, "root"))
    return pve


def stanza(name: str, server: SshServer | PveHost, user: str, **more: str) -> str:
    """A Host of ~/.ssh/config that enters with the right key and knows the right host key."""
    words = {
        "HostName": "127.0.0.1",
        "Port": str(server.port),
        "User": user,
        "IdentityFile": f'"{server.keys / "client"}"',
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f'"{server.keys / "known_hosts"}"',
        **more,
    }
    return "\n".join([f"Host {name}", *(f"  {key} {value}" for key, value in words.items()), ""])


def reach_by(config: Path, server: SshServer | PveHost, port: int, name: str | None = None) -> str:
    """Let `server` be reached by another port, a proxy's, under its own key; by which name of ~/.ssh/config."""
    name = name or f"port{port}"
    known = config.parent / f"known-{name}"
    known.write_text((server.keys / "known_hosts").read_text().replace(f":{server.port} ", f":{port} "))
    user = server.user if isinstance(server, SshServer) else "root"
    with config.open("a") as file:
        file.write(stanza(name, server, user, Port=str(port), UserKnownHostsFile=f'"{known}"'))
    return name


def python_folders() -> tuple[Path, ...]:
    """The interpreter of the tests and its packages, where a container does not have them by /usr."""
    folders = {Path(sys.prefix), Path(sys.base_prefix)}
    return tuple(sorted(path for path in folders if not path.is_relative_to("/usr")))

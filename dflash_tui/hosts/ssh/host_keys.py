"""Which keys a host may show: those of the person's known_hosts files, and of ours, the only one that is written."""

from dataclasses import dataclass
from pathlib import Path

import asyncssh

from dflash_tui import paths

DEFAULT_PORT = 22
_PERSONS_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is on file for one host and port. `portless` are keys of the same name without the port: one of them is
    good enough, but another one is not yet a change, since each port is a server of its own."""

    keys: list[asyncssh.SSHKey]
    portless: list[asyncssh.SSHKey]
    authorities: list[asyncssh.SSHKey]
    revoked: list[asyncssh.SSHKey]

    def trusted(self) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
        """As asyncssh wants them: host keys, certificate authorities, revoked keys."""
        return self.keys, self.authorities, self.revoked


def read_known_keys(host: str, port: int, files: list[str] | None) -> KnownKeys:
    """Of `files` (None: where OpenSSH looks) and of our own file. A line that cannot be read is passed over."""
    known = asyncssh.SSHKnownHosts()
    for file in [*(_PERSONS_FILES if files is None else files), str(paths.known_hosts_file())]:
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            try:
                known.load(line)
            except ValueError:
                continue
    exact = known.match(named(host, port), "", None)
    portless = known.match(host, "", None) if port != DEFAULT_PORT else ([], [], [])
    return KnownKeys(list(exact[0]), list(portless[0]), [*exact[1], *portless[1]], [*exact[2], *portless[2]])


def remember(host: str, port: int, key: asyncssh.SSHKey) -> None:
    """Add a key that a person has accepted to our own file."""
    file = paths.known_hosts_file()
    paths.private_dir(file.parent)
    words = key.export_public_key().decode("ascii").split()[:2]
    with open(file, "a", encoding="utf-8") as out:
        out.write(" ".join([named(host, port), *words]) + "\n")


def named(host: str, port: int) -> str:
    """As known_hosts files spell it."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def fingerprint(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"

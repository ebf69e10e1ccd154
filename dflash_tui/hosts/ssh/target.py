"""What ~/.ssh/config says of an address. Reads files, and writes none."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from dflash_tui.errors import UsageError
from dflash_tui.hosts.ssh.address import Address, parse_address
from dflash_tui.hosts.ssh.host_keys import DEFAULT_PORT, named
from dflash_tui.text import visible

_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class Target:
    """`alias` is the word that ~/.ssh/config knows, `host` the machine, `key_host` its name in known_hosts files.

    `key_port` belongs to `key_host`. `identities` are the key files that it names and that are there, `agent_keys` the
    public keys that an agent is limited to (None: no limit). `names_ciphers`: a person has chosen among them.
    """

    alias: str
    host: str
    port: int
    user: str
    key_host: str
    key_port: int
    known_files: list[str] | None
    identities: list[str]
    agent_keys: list[asyncssh.SSHKey] | None
    jumps: list[Address]
    connect_timeout_s: float | None
    names_ciphers: bool

    @property
    def where(self) -> str:
        return f"{self.user}@{named(self.host, self.port)}"

    def key_files(self) -> list[str]:
        """The private keys that could open this machine, by preference."""
        return self.identities or _existing(_DEFAULT_KEYS)


def read_target(address: Address) -> Target:
    """UsageError if the file does not read."""
    try:
        options = asyncssh.SSHClientConnectionOptions(
            config=(),
            host=address.host,
            port=address.port or (),
            username=address.user or (),
            client_keys=None,
            known_hosts=b"",
        )
    except (ValueError, OSError) as e:
        raise UsageError(f"~/.ssh/config does not read: {visible(str(e))}") from e
    config = options.config
    identities = _existing(_words(config.get("IdentityFile")))
    files = [*_words(config.get("UserKnownHostsFile")), *_words(config.get("GlobalKnownHostsFile"))]
    timeout_s = config.get("ConnectTimeout")
    return Target(
        alias=address.host,
        host=options.host,
        port=options.port,
        user=options.username,
        key_host=options.host_key_alias or options.host,
        # OpenSSH, too, takes an alias for the whole name.
        key_port=DEFAULT_PORT if options.host_key_alias else options.port,
        known_files=files or None,
        identities=identities,
        agent_keys=_public_keys(identities) if config.get("IdentitiesOnly") else None,
        jumps=_jumps(options.tunnel),
        connect_timeout_s=float(timeout_s) if isinstance(timeout_s, int) and timeout_s else None,
        names_ciphers=config.get("Ciphers") is not None,
    )


def _jumps(words: object) -> list[Address]:
    if not isinstance(words, str) or words.lower() == "none":
        return []
    return [
        parse_address(word.strip().removeprefix("ssh://"), "ProxyJump of ~/.ssh/config") for word in words.split(",")
    ]


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else []


def _existing(files: Iterable[str]) -> list[str]:
    paths = [Path(file).expanduser() for file in files]
    return [str(path) for path in paths if path.is_file()]


def _public_keys(files: list[str]) -> list[asyncssh.SSHKey]:
    """What an agent knows these files by. A file without its .pub beside it cannot be asked for."""
    keys = []
    for file in files:
        try:
            keys.append(asyncssh.read_public_key(f"{file}.pub"))
        except (OSError, asyncssh.KeyImportError):
            continue
    return keys

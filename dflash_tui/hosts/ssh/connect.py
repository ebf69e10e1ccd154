"""Into a machine: over its jump hosts, past its host key, with a key of ours. What nobody vouched for is not believed.

Asks the person who is present, where there is one; a question is asked while no connection waits for the answer.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from dflash_tui import paths
from dflash_tui.errors import (
    AuthFailedError,
    HostKeyChangedError,
    HostKeyError,
    HostKeyUnknownError,
    UnreachableError,
    UsageError,
)
from dflash_tui.hosts.person import HostKey, present
from dflash_tui.hosts.ssh.address import Address
from dflash_tui.hosts.ssh.faults import CONNECT_S, LOGIN_S, no_answer, not_found, why_not
from dflash_tui.hosts.ssh.host_keys import KnownKeys, fingerprint, named, read_known_keys, remember
from dflash_tui.hosts.ssh.keys import offered_keys, opened, unlock_another
from dflash_tui.hosts.ssh.target import Target, read_target

Connection = asyncssh.SSHClientConnection

# A peer that is silent is lost after the interval times one more than the count.
KEEPALIVE_S = 5.0
KEEPALIVE_COUNT = 3
_MAX_JUMPS = 8
# First of all that asyncssh offers: a packet of ChaCha20, its own first, takes five times as long.
_CIPHERS = "^aes256-gcm@openssh.com,aes128-gcm@openssh.com"
_METHODS = ("gssapi-with-mic", "hostbased", "publickey")

# What it logs is meant for its own developers; what a person must know comes as an error.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)


async def connect(address: Address, *, tunnel: Connection | None = None, num_jumps: int = 0) -> Connection:
    """A connection that is ready for programs. UnreachableError, or one of its children, says why there is none."""
    if num_jumps > _MAX_JUMPS:
        raise UsageError("the jump hosts of ~/.ssh/config go in a circle")
    target = await asyncio.to_thread(read_target, address)
    # A hop is told its way by who goes over it.
    jumps, hop = ([], tunnel) if tunnel else (target.jumps, None)
    try:
        for jump in jumps:
            hop = await connect(jump, tunnel=hop, num_jumps=num_jumps + 1)
        connection = await _enter(target, hop)
    except BaseException:
        if hop and not tunnel:
            hop.abort()
        raise
    # Closes with it.
    connection.set_tunnel(hop)
    return connection


async def _enter(target: Target, tunnel: Connection | None) -> Connection:
    tried = opened(target)
    while True:
        known = await asyncio.to_thread(read_known_keys, target.key_host, target.key_port, target.known_files)
        witness = _Witness(known)
        try:
            return await _attempt(target, witness, tunnel)
        except asyncssh.PermissionDenied as e:
            if not await unlock_another(target, tried):
                raise AuthFailedError(_refused(target)) from e
        except asyncssh.HostKeyNotVerifiable as e:
            await _settle_key(target, witness, e)


class _Witness(asyncssh.SSHClient):
    """Sees the first contact, and a host key that is not on file. Vouches only for one that is known without a port."""

    def __init__(self, known: KnownKeys) -> None:
        self.known = known
        self.has_answered = False
        self.key: asyncssh.SSHKey | None = None
        self.on_contact: Callable[[], None] = lambda: None

    def connection_made(self, conn: Connection) -> None:
        self.has_answered = True
        self.on_contact()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.key = key
        return not self.known.keys and key in self.known.portless


async def _attempt(target: Target, witness: _Witness, tunnel: Connection | None) -> Connection:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(target.connect_timeout_s or CONNECT_S) as limit:
            witness.on_contact = lambda: limit.reschedule(loop.time() + LOGIN_S)
            return await asyncssh.connect(
                target.alias,
                port=target.port,
                username=target.user,
                tunnel=tunnel,
                client_factory=lambda: witness,
                known_hosts=lambda *_: witness.known.trusted(),
                server_host_key_algs=_host_key_algorithms(witness.known),
                encryption_algs=() if target.names_ciphers else _CIPHERS,
                # The time limit is ours, above.
                connect_timeout=None,
                login_timeout=0,
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVE_COUNT,
                preferred_auth=_METHODS,
                agent_forwarding=False,
                x11_forwarding=False,
                # What a program there finds in its environment is for config.toml to say.
                env=None,
                send_env=None,
                request_pty=False,
                encoding=None,
                utf8_decode_errors="replace",
                **offered_keys(target),
            )
    except TimeoutError:
        raise no_answer(target.where, target.connect_timeout_s, has_answered=witness.has_answered) from None
    except (asyncssh.PermissionDenied, asyncssh.HostKeyNotVerifiable):
        raise
    except (socket.gaierror, UnicodeError):
        raise not_found(target.host) from None
    except (asyncssh.Error, OSError, ValueError) as e:
        raise why_not(e, target.where) from e


def _host_key_algorithms(known: KnownKeys) -> str | list[str]:
    """Kinds of key that are on file come first. The others stay, so that a server which has changed its kind is seen.

    Certificates only where an authority is known: asyncssh would not look at the plain key behind one.
    """
    if known.authorities:
        return "default"
    on_file = [algorithm for key in known.keys for algorithm in key.sig_algorithms]
    usual = get_default_public_key_algs()
    ordered = [*(a for a in on_file if a in usual), *usual]
    return [algorithm.decode("ascii") for algorithm in dict.fromkeys(ordered)]


async def _settle_key(target: Target, witness: _Witness, error: asyncssh.HostKeyNotVerifiable) -> None:
    """Return once a person has vouched for the key that was shown; a HostKeyError otherwise."""
    key, known = witness.key, witness.known
    if key is None or key in known.revoked:
        raise HostKeyError(f"the host key of {target.where} cannot be trusted ({error}): look into known_hosts")
    shown = fingerprint(key)
    if known.keys:
        on_file = " or ".join(fingerprint(one) for one in known.keys)
        raise HostKeyChangedError(
            f"THE HOST KEY OF {target.where} HAS CHANGED: it shows {shown}, on file is {on_file}."
            " Somebody may be in between: nothing was sent. If the machine was set up anew, remove the old key with"
            f" `ssh-keygen -R '{named(target.key_host, target.key_port)}'` (or from {paths.known_hosts_file()})"
        )
    person = present()
    if person is None:
        raise HostKeyUnknownError(
            f"the host key of {target.where} is not known yet: {shown}. Connect once from a terminal and compare"
            " it there, or add it to ~/.ssh/known_hosts with ssh"
        )
    kind, _, short = shown.partition(" ")
    if not await person.trusts(HostKey(target.where, kind, short)):
        raise HostKeyUnknownError(f"the host key of {target.where}, {shown}, was not accepted")
    await asyncio.to_thread(_keep, target, key)


def _keep(target: Target, key: asyncssh.SSHKey) -> None:
    try:
        remember(target.key_host, target.key_port, key)
    except OSError as e:
        raise UnreachableError(f"{paths.known_hosts_file()}: cannot be written ({e.strerror}): make room") from e


def _refused(target: Target) -> str:
    offered = ", ".join(target.key_files()) or "none on file"
    return (
        f"{target.where} lets none of our keys in (files: {offered}; and those of the agent, if one runs):"
        f" add one with `ssh-copy-id`, or name the right one as IdentityFile in ~/.ssh/config"
    )

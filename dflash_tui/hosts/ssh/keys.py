"""Which private keys are offered, and how one that is locked by a passphrase is opened."""

import asyncio
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import asyncssh

from dflash_tui.errors import AuthFailedError
from dflash_tui.hosts.person import Person, present
from dflash_tui.hosts.ssh.target import Target

_PASSPHRASE_TRIES = 3

# By file, so that a reconnect asks for nothing. In memory alone.
_unlocked: dict[str, asyncssh.SSHKey] = {}
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def offered_keys(target: Target) -> dict[str, Any]:
    """The words for asyncssh.connect. A file that is locked is passed over there: its key may be in the agent."""
    opened = [_unlocked[file] for file in target.key_files() if file in _unlocked]
    words: dict[str, Any] = {"client_keys": [*opened, *target.identities] or (), "ignore_encrypted": True}
    if target.agent_keys:
        words["agent_identities"] = target.agent_keys
    elif target.agent_keys is not None:
        # Limited to none.
        words["agent_path"] = None
    return words


def opened(target: Target) -> set[str]:
    """The files whose keys were opened before."""
    return {file for file in target.key_files() if file in _unlocked}


async def unlock_another(target: Target, tried: set[str]) -> bool:
    """Open one more locked file, none of `tried`. False: there is none, or nobody knows its passphrase.

    AuthFailedError when there is one and nobody to ask.
    """
    for file in target.key_files():
        if file in tried:
            continue
        tried.add(file)
        if file not in _unlocked and not await asyncio.to_thread(_is_locked, file):
            continue
        person = present()
        if person is None and file not in _unlocked:
            raise AuthFailedError(
                f"{target.where} lets none of our open keys in, and {file} is locked by a passphrase:"
                f" `ssh-add {file}`, or connect from a terminal"
            )
        # Who waits for his turn may find it opened: several machines take one key.
        async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if file in _unlocked or (person and await _ask(person, file)):
                return True
    return False


async def _ask(person: Person, file: str) -> bool:
    """Whether he could open it."""
    for number in range(_PASSPHRASE_TRIES):
        words = await person.passphrase(file, is_repeated=number > 0)
        if words is None:
            break
        # Deriving a key takes long on purpose.
        if key := await asyncio.to_thread(_open, file, words):
            _unlocked[file] = key
            return True
    return False


def _is_locked(file: str) -> bool:
    try:
        asyncssh.read_private_key(file)
    except asyncssh.KeyImportError as e:
        return str(e).startswith("Passphrase")
    except OSError:
        return False
    return False


def _open(file: str, passphrase: str) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.read_private_key(Path(file), passphrase)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, OSError):
        return None

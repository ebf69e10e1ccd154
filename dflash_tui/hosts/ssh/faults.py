"""Every way not to get in, as one sentence: what happened, where, and what to do. Who asked puts its name before it."""

import asyncssh

from dflash_tui.errors import UnreachableError
from dflash_tui.text import visible

CONNECT_S = 10.0
# From the first contact on. A person may have to touch a key.
LOGIN_S = 20.0


def not_found(host: str) -> UnreachableError:
    return UnreachableError(f"no machine is known by the name {visible(host)}: correct the address in config.toml")


def no_answer(where: str, connect_s: float | None, *, has_answered: bool) -> UnreachableError:
    if has_answered:
        return UnreachableError(
            f"{where} took the connection but did not let us in within {LOGIN_S:g} s:"
            " the machine or its SSH server hangs; try again, or look at it"
        )
    return UnreachableError(
        f"no answer from {where} within {connect_s or CONNECT_S:g} s: is the machine on, and the address right?"
    )


def why_not(error: Exception, where: str) -> UnreachableError:
    """The sentence for an error that a connect ended with. Host keys and permission are not among them."""
    words = visible(str(error)) or type(error).__name__
    if isinstance(error, ConnectionRefusedError):
        sentence = f"{where} refuses connections: is its SSH server running, and the port right?"
    elif isinstance(error, asyncssh.ChannelOpenError):
        sentence = f"the jump host cannot reach {where} ({words}): check its address as seen from there"
    elif isinstance(error, (asyncssh.ConnectionLost, ConnectionError)):
        sentence = f"{where} hung up while we greeted: too many connections at once, or a ban; try again in a minute"
    elif isinstance(error, asyncssh.KeyExchangeFailed):
        sentence = f"{where} speaks no cipher or key exchange that we know ({words}): update its SSH server"
    elif isinstance(error, asyncssh.DisconnectError):
        sentence = f"{where} ended the connection ({words}): look into its SSH server's log"
    elif isinstance(error, OSError) and error.filename:
        sentence = f"{visible(str(error.filename))} cannot be read ({error.strerror}): correct ~/.ssh/config"
    elif isinstance(error, OSError):
        sentence = f"{where} cannot be reached ({error.strerror or words}): check network and address"
    else:
        sentence = f"{where} cannot be reached ({words}): correct ~/.ssh/config"
    return UnreachableError(sentence)

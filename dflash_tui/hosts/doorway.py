"""The words that put a person on a machine: a shell there, in the terminal that he sits at. Starts nothing itself.

His own ssh makes the way, with all that its config says. A container is entered with `pct enter` on its node.
"""

import os

from dflash_tui.config import LOCAL, HostSpec
from dflash_tui.hosts.ssh.address import parse_address

_PCT = "/usr/sbin/pct"


def shell_words(spec: HostSpec) -> list[str]:
    """The argv of a shell on `spec`. UsageError if its address is none."""
    if spec.kind == "local":
        return [os.environ.get("SHELL") or "/bin/sh"]
    inside = [_PCT, "enter", str(spec.vmid)] if spec.kind == "proxmox" else []
    if inside and spec.sudo:
        # There is a terminal: it may ask for a password.
        inside = ["sudo", *inside]
    return inside if spec.address == LOCAL else [*_ssh_words(spec), *inside]


def _ssh_words(spec: HostSpec) -> list[str]:
    address = parse_address(spec.address or "", f"hosts.{spec.name}.address")
    port = ["-p", str(address.port)] if address.port else []
    # An option's value is never read as an option, whatever it begins with.
    user = ["-l", address.user] if address.user else []
    return ["ssh", "-t", *port, *user, "--", address.host]

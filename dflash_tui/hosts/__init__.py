"""HOW to reach a machine. One module a kind, imported on use; a new kind is one new file and one line here."""

from importlib import import_module

from dflash_tui.config import HostSpec
from dflash_tui.hosts.base import Host

_KINDS = {"local": "local.LocalHost", "ssh": "ssh.SshHost", "proxmox": "proxmox.ProxmoxHost"}


def open_host(spec: HostSpec) -> Host:
    """The host that `spec` describes. Nothing is connected before its first use."""
    module, _, name = _KINDS[spec.kind].partition(".")
    host: Host = getattr(import_module(f"{__name__}.{module}"), name)(spec)
    return host

"""`config.toml` read into frozen values; a mistake names the file, the key and the nearest right key.

Owns what may be written there and the defaults. Opens no host, makes no folder.
"""

import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean

LOCAL = "local"


class HostSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[hosts.NAME]`: how to reach a machine, and where things lie on it.

    `address` of a container is its node's; `sudo` lets pct run by `sudo -n`, for who is not root there.
    """

    kind: Literal["local", "ssh", "proxmox"]
    name: str = ""
    address: str | None = None
    vmid: Annotated[int, Meta(ge=100, le=999_999_999)] | None = None
    python: str | None = None
    workdir: str | None = None
    env: dict[str, str] = {}
    sudo: bool = False


class StopSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    grace_s: float = 120.0


class PanelsSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    length_edges: tuple[float, float] = (1500.0, 3000.0)


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hosts: dict[str, HostSpec] = {}
    stop: StopSpec = StopSpec()
    panels: PanelsSpec = PanelsSpec()
    aliases: dict[str, str] = {}

    def host(self, name: str) -> HostSpec:
        """The host called `name`; UsageError with the nearest name if there is none."""
        if name in self.hosts:
            return self.hosts[name]
        raise UsageError(f"no host named {name!r} in {paths.config_file()}: {did_you_mean(name, self.hosts)}")


def load() -> Config:
    """The person's config, the host `local` always among its hosts; UsageError if it cannot be read."""
    file = paths.config_file()
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        tree = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{file}: not readable as TOML: {e}") from e
    except OSError as e:
        raise UsageError(f"{file}: cannot be read: {e.strerror}") from e
    return _convert(tree, file)


def _convert(tree: dict[str, Any], file: Path) -> Config:
    _refuse_unknown(tree, Config, (), file)
    for name, table in _table(tree, "hosts", file).items():
        _refuse_unknown(table, HostSpec, ("hosts", name), file)
        table["name"] = name
    for section, kind in (("stop", StopSpec), ("panels", PanelsSpec)):
        _refuse_unknown(_table(tree, section, file), kind, (section,), file)
    local = tree.setdefault("hosts", {}).setdefault(LOCAL, {"kind": LOCAL, "name": LOCAL})
    local.setdefault("kind", LOCAL)
    local.setdefault("python", sys.executable)
    local.setdefault("workdir", str(paths.local_workdir()))
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as e:
        raise UsageError(f"{file}: {str(e).replace('`', '').replace('$.', '')}") from e
    for name, host in config.hosts.items():
        _check_host(name, host, file)
    return config


def _table(tree: dict[str, Any], key: str, file: Path) -> dict[str, Any]:
    table = tree.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{file}: {key} = {table!r}: must be a table, [{key}]")
    return table


def _refuse_unknown(table: Any, kind: type[msgspec.Struct], where: tuple[str, ...], file: Path) -> None:
    if not isinstance(table, dict):
        raise UsageError(f"{file}: {'.'.join(where)} = {table!r}: must be a table, [{'.'.join(where)}]")
    known = [f for f in kind.__struct_fields__ if (kind, f) != (HostSpec, "name")]
    for key in table:
        if key not in known:
            raise UsageError(f"{file}: unknown key {'.'.join((*where, key))}: {did_you_mean(key, known)}")


def _check_host(name: str, host: HostSpec, file: Path) -> None:
    needs: set[str] = {"local": set(), "ssh": {"address"}, "proxmox": {"address", "vmid"}}[host.kind]
    for key in ("address", "vmid"):
        if (getattr(host, key) is None) == (key in needs):
            verb = "needs" if key in needs else "has no"
            raise UsageError(f"{file}: hosts.{name} is of kind {host.kind!r} and {verb} {key}")
    if host.sudo and host.kind != "proxmox":
        raise UsageError(f"{file}: hosts.{name}.sudo: is for pct alone, on a host of kind 'proxmox'")
    if (name == LOCAL) != (host.kind == LOCAL):
        raise UsageError(f"{file}: hosts.{name}: the kind 'local' belongs to the host named 'local' alone")

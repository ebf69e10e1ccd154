"""`config.toml` read into frozen values, and a host added to it; a mistake names file, key and nearest right key.

Owns what may be written there and the defaults. Opens no host, makes no folder.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean, visible

LOCAL = "local"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Which keys a host of each kind must have, and no other kind may.
_NEEDS: dict[str, set[str]] = {"local": set(), "ssh": {"address"}, "proxmox": {"address", "vmid"}}


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


class ChecksSpec(msgspec.Struct, frozen=True):
    """`[checks.NAME]` sets thresholds of a check, `[checks] baseline` names the run that others are held against."""

    baseline: str | None = None
    thresholds: dict[str, dict[str, float]] = {}


class AlertsSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a new warning in a followed run does: `command` is an argv, and gets the finding as JSON on its stdin."""

    bell: bool = False
    command: tuple[Annotated[str, Meta(min_length=1)], ...] = ()


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hosts: dict[str, HostSpec] = {}
    stop: StopSpec = StopSpec()
    panels: PanelsSpec = PanelsSpec()
    aliases: dict[str, str] = {}
    checks: ChecksSpec = ChecksSpec()
    alerts: AlertsSpec = AlertsSpec()

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


class Addition:
    """A host that is to be added to config.toml. UsageError if the file would not be one with it.

    `spec` is the host, `text` what is written. Whatever stands in the file stays as it is, comments included.
    """

    def __init__(self, name: str, keys: dict[str, str | int | bool]) -> None:
        file = paths.config_file()
        if not _NAME.fullmatch(name):
            raise UsageError(f"{visible(name)!r} cannot name a host: use letters, digits, '-' and '_', 64 at most")
        if name in load().hosts:
            raise UsageError(f"there is a host {name!r} already, see {file}: choose another name, or change it there")
        lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
        self.text = "\n".join([f"[hosts.{name}]", *lines, ""])
        self._before = file.read_text(encoding="utf-8") if file.exists() else ""
        self._after = (self._before.rstrip("\n") + "\n\n" if self._before.strip() else "") + self.text
        try:
            tree = tomllib.loads(self._after)
        except tomllib.TOMLDecodeError as e:
            raise UsageError(f"{file}: [hosts.{name}] cannot be added to it ({e}): write it there yourself") from e
        self.spec = _convert(tree, file).hosts[name]

    def write(self) -> Path:
        """Add it to the file, whole or not at all; where that is. UsageError if somebody changed it meanwhile."""
        file = paths.config_file()
        # A link to where somebody keeps such files stays one.
        place = file.resolve()
        try:
            if (place.read_text(encoding="utf-8") if place.exists() else "") != self._before:
                raise UsageError(f"{file}: was changed meanwhile: try again")
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = place.with_name(f".{place.name}.part")
            part.write_text(self._after, encoding="utf-8")
            if place.exists():
                part.chmod(place.stat().st_mode & 0o777)
            part.replace(place)
        except OSError as e:
            raise UsageError(f"{file}: cannot be written: {e.strerror}") from e
        return file


def _toml(value: str | int | bool) -> str:
    """JSON's strings, numbers and truths are TOML's too, but for a DEL that stands as it is."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _convert(tree: dict[str, Any], file: Path) -> Config:
    _refuse_unknown(tree, Config, (), file)
    for name, table in _table(tree, "hosts", file).items():
        _refuse_unknown(table, HostSpec, ("hosts", name), file)
        table["name"] = name
    checks = dict(_table(tree, "checks", file))
    baseline = {"baseline": checks.pop("baseline")} if isinstance(checks.get("baseline"), str) else {}
    for name, table in checks.items():
        if not isinstance(table, dict):
            raise UsageError(f"{file}: checks.{name} = {table!r}: must be a table of thresholds, [checks.{name}]")
        for key, value in table.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise UsageError(f"{file}: checks.{name}.{key} = {value!r}: must be a number")
    tree["checks"] = {"thresholds": checks, **baseline}
    for section, kind in (("stop", StopSpec), ("panels", PanelsSpec), ("alerts", AlertsSpec)):
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
    needed = _NEEDS[host.kind]
    for key in ("address", "vmid"):
        if (getattr(host, key) is None) == (key in needed):
            verb = "needs" if key in needed else "has no"
            raise UsageError(f"{file}: hosts.{name} is of kind {host.kind!r} and {verb} {key}")
    if host.sudo and host.kind != "proxmox":
        raise UsageError(f"{file}: hosts.{name}.sudo: is for pct alone, on a host of kind 'proxmox'")
    if host.python and host.python.startswith("~"):
        raise UsageError(f"{file}: hosts.{name}.python: no shell makes a home of ~ there: write the whole path")
    if (name == LOCAL) != (host.kind == LOCAL):
        raise UsageError(f"{file}: hosts.{name}: the kind 'local' belongs to the host named 'local' alone")

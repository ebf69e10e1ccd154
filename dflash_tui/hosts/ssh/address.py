"""`hosts.NAME.address`: a name of ~/.ssh/config, user@host:port, [v6]:port."""

import re
from dataclasses import dataclass

from dflash_tui.errors import UsageError

_BRACKETED = re.compile(r"\[([^\]]+)\](?::([0-9]+))?")
_NAMED = re.compile(r"([^:\[\]]+)(?::([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Address:
    """What is None is for ~/.ssh/config to say."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and self.port else self.host
        return f"{f'{self.user}@' if self.user else ''}{host}{f':{self.port}' if self.port else ''}"


def parse_address(text: str, where: str) -> Address:
    """UsageError, beginning with `where`, if it is none."""
    user, at, place = text.rpartition("@")
    is_bare_v6 = place.count(":") > 1 and not place.startswith("[")
    match = None if is_bare_v6 else _BRACKETED.fullmatch(place) or _NAMED.fullmatch(place)
    host = place if is_bare_v6 else match.group(1) if match else ""
    port = int(match.group(2)) if match and match.group(2) else None
    is_fit = host and host.isprintable() and " " not in host and not host.startswith("-") and (bool(user) or not at)
    if not is_fit or (port is not None and not 0 < port < 65536):
        raise UsageError(f"{where} = {text!r}: must be a name of ~/.ssh/config, user@host:port or [v6]:port")
    return Address(host, user or None, port)

"""What a person asks to be started: a recipe, a script, a run like another one. Words only: nobody is asked here."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dflash_tui import paths
from dflash_tui.run_env import run_env


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """`recipe` is a bundled name or a .toml file's path, `settings` are key=value words laid over it.

    `gpus` are the numbers of those it may see ("0,1"), `env_file` holds more of its environment.
    """

    recipe: str
    host: str
    name: str | None = None
    settings: tuple[str, ...] = ()
    gpus: str | None = None
    env_file: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """A script to be run as a run, with its arguments; `log` is a path on the host, None to find out. Else as above."""

    file: Path
    host: str
    args: tuple[str, ...] = ()
    name: str | None = None
    log: str | None = None
    gpus: str | None = None
    env_file: str | None = None


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """A run like another one: `settings` over its config, or other `args` for its script (None: the same)."""

    run_id: str
    settings: tuple[str, ...] = ()
    args: tuple[str, ...] | None = None
    host: str | None = None
    name: str | None = None
    gpus: str | None = None
    env_file: str | None = None


def env_of(request: LaunchRequest | ScriptRequest | CloneRequest) -> dict[str, str]:
    """What is laid over the host's environment. UsageError for a file that holds none, or for numbers of no GPUs."""
    return run_env(Path(request.env_file).expanduser() if request.env_file else None, request.gpus)


def remember(request: LaunchRequest) -> None:
    # A convenience for `L`: a full disk here must not make a launch that succeeded look like one that failed.
    with suppress(OSError):
        _last_launch_file().write_bytes(msgspec.json.encode(request))


def last_launch() -> LaunchRequest | None:
    """What was launched last from this machine, for `L`."""
    try:
        return msgspec.json.decode(_last_launch_file().read_bytes(), type=LaunchRequest)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _last_launch_file() -> Path:
    return paths.data_dir() / "last_launch.json"

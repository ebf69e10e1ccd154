"""Where things lie on this machine. Says where, makes folders that are ours; reads and writes nothing in them."""

import os
import stat
from pathlib import Path

from dflash_tui.errors import DflashError, UsageError

_HOME = "DFLASH_TUI_HOME"
# sun_path holds 104 bytes on macOS and 108 on Linux, the closing NUL included.
_SOCKET_PATH_BYTES = 100


def _home() -> Path | None:
    text = os.environ.get(_HOME)
    return Path(text).expanduser().absolute() if text else None


def config_dir() -> Path:
    """Holds `config.toml` and the person's own `panels/`."""
    if home := _home():
        return home / "config"
    import platformdirs

    return platformdirs.user_config_path("dflash-tui")


def data_dir() -> Path:
    """Holds the database, the mirrors and the runs of the host `local`."""
    if home := _home():
        return home / "data"
    import platformdirs

    return platformdirs.user_data_path("dflash-tui")


def config_file() -> Path:
    return config_dir() / "config.toml"


def database_file() -> Path:
    """UsageError when DuckDB could not keep one there."""
    place = data_dir() / "dflash.duckdb"
    if "?" in str(place):
        # What stands behind it is taken for the query of a URL, and the log beside the file for another folder's.
        raise UsageError(f"{place}: a database cannot lie where a name has a '?'; set {_HOME} to another folder")
    return place


def lock_file() -> Path:
    return data_dir() / "store.lock"


def known_hosts_file() -> Path:
    """The host keys that a person has accepted here; those of ~/.ssh/known_hosts are read as well, never written."""
    return data_dir() / "known_hosts"


def mirrors_dir() -> Path:
    return data_dir() / "mirrors"


def local_workdir() -> Path:
    return data_dir() / "work"


def socket_file() -> Path:
    """The owner's socket, in a folder of ours; where the path would be too long, in a folder of ours under /tmp.

    Not under XDG_RUNTIME_DIR or TMPDIR: a session, a cron job and a batch job do not agree on them, and all of them
    must find the one owner.
    """
    place = data_dir() / "run" / "owner.sock"
    if len(os.fsencode(place)) <= _SOCKET_PATH_BYTES:
        return place
    # Loads OpenSSL: 3 ms, for those with a long home alone.
    import hashlib

    mark = hashlib.sha256(os.fsencode(data_dir().resolve())).hexdigest()[:16]
    return Path("/tmp") / f"dflash-tui-{os.getuid()}" / f"{mark}.sock"


def private_dir(path: Path) -> Path:
    """`path`, made with mode 0700 if it was not there; an error if it is not ours or others may write in it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(path)
        path.chmod(0o700)
    except OSError as e:
        raise DflashError(f"{path}: cannot be used as a folder ({e.strerror}); set {_HOME} to one that can") from e
    return path


def check_private(path: Path) -> None:
    """DflashError unless `path` is a folder of ours that nobody else may write in; OSError when it is not there."""
    found = path.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise DflashError(f"{path}: is not a folder of ours alone; remove it, or set {_HOME} to another place")


def bundled(name: str) -> Path:
    """The bundled folder `sql` or `trainer`: inside the installed package, else beside it in a checkout."""
    here = Path(__file__).resolve().parent
    for place in (here / "_bundled" / name, here.parent / name):
        if place.is_dir():
            return place
    raise UsageError(f"the bundled folder {name!r} is missing from {here}: install dflash-tui again")

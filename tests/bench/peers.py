"""Who else can do it: found on PATH, or installed into an environment of their own, .venv-bench.

`peers.txt` pins them. Without a network, or with DFLASH_BENCH_PEERS=0, they are rows that say so.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.bench.rows import ROOT, Row

_FOLDER = ROOT / ".venv-bench"
_WANTED = Path(__file__).parent / "peers.txt"
_INSTALL_TIMEOUT_S = 300


class NoPeerError(Exception):
    """Why a peer is not measured."""


@cache
def environment() -> Path:
    """The folder with the peers' programs, and a `python` that imports polars. NoPeerError when it cannot be made."""
    if os.environ.get("DFLASH_BENCH_PEERS") == "0":
        raise NoPeerError("DFLASH_BENCH_PEERS=0: no peers are installed")
    stamp, wanted = _FOLDER / "peers.txt", _WANTED.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing the peers into .venv-bench", file=sys.stderr)
        pip = [_FOLDER / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q", "install", "-r", _WANTED]
        try:
            subprocess.run([sys.executable, "-m", "venv", _FOLDER], check=True, capture_output=True, text=True)
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
        except subprocess.SubprocessError as e:
            words = str(getattr(e, "stderr", None) or e).strip().splitlines()
            raise NoPeerError(f"could not be installed: {words[-1] if words else e}") from e
        stamp.write_text(wanted)
    return _FOLDER / "bin"


def program(name: str) -> Path:
    """`name` on PATH, or in the peers' environment. NoPeerError when it is in neither."""
    if found := shutil.which(name):
        return Path(found)
    place = environment() / name
    if not place.exists():
        raise NoPeerError(f"{name} is not on PATH")
    return place


def missing(bar: str, why: NoPeerError) -> Row:
    """The row of a peer that is not there."""
    return Row(bar, None, None, None, str(why))

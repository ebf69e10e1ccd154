"""Who else can do it: found on PATH, or installed into an environment of their own, .venv-bench.

`peers*.txt` pin them. Without a network, or with DFLASH_BENCH_PEERS=0, they are rows that say so.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.bench.rows import ROOT, Row

_FOLDER = ROOT / ".venv-bench"
_HERE = Path(__file__).parent
_INSTALL_TIMEOUT_S = 300


class NoPeerError(Exception):
    """Why a peer is not measured."""


@cache
def environment() -> Path:
    """The folder with the peers' programs, and a `python` that imports polars. NoPeerError when it cannot be made."""
    _install("peers.txt", ["-r", _HERE / "peers.txt"])
    return _FOLDER / "bin"


@cache
def trainers() -> Path:
    """A python that imports speculators, SpecForge and dflash, on our own versions of torch and transformers."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    ours = [line for line in lines if line.startswith(("torch==", "transformers==", "safetensors=="))]
    # By their exact versions, and before the others: a range would let pip choose a CUDA build of torch.
    _install("ours.txt", ours, stamp="\n".join(ours))
    _install("peers-trainers-need.txt", ["-r", _HERE / "peers-trainers-need.txt", *ours])
    _install("peers-trainers.txt", ["--no-deps", "-r", _HERE / "peers-trainers.txt"])
    return _FOLDER / "bin" / "python"


def _install(name: str, words: list[str | Path], stamp: str | None = None) -> None:
    """Once, until the file `name` reads otherwise. NoPeerError when it cannot be."""
    if os.environ.get("DFLASH_BENCH_PEERS") == "0":
        raise NoPeerError("DFLASH_BENCH_PEERS=0: no peers are installed")
    done, wanted = _FOLDER / name, stamp or (_HERE / name).read_text()
    if done.exists() and done.read_text() == wanted:
        return
    print(f"installing the peers of {name} into .venv-bench", file=sys.stderr)
    python = _FOLDER / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", *words]
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", _FOLDER], check=True, capture_output=True, text=True)
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
    except subprocess.SubprocessError as e:
        words_said = str(getattr(e, "stderr", None) or e).strip().splitlines()
        raise NoPeerError(f"could not be installed: {words_said[-1] if words_said else e}") from e
    done.write_text(wanted)


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

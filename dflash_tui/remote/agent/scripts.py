"""Scripts that were pushed: one folder for each content, named by its hash, with the script under its own name."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import Any, Dict

from .errors import Refused
from .folder import absolute, make_private

SCRIPTS = "dflash-scripts"


def find(op: Dict[str, Any]) -> Dict[str, Any]:
    """Where the script `name` with hash `sha256` lies or goes (`path`), and whether it is there.

    What it wrote beside itself is nobody's business; what it became is: a changed one is not there.
    """
    sha256, name = str(op["sha256"]), op["name"]
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise Refused("%r is no hash of a script" % sha256)
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused("%r is no name of a script" % name)
    root = os.path.join(absolute(op["workdir"]), SCRIPTS)
    folder = os.path.join(root, sha256)
    make_private(root)
    make_private(folder)
    path = os.path.join(folder, name)
    return {"path": path, "there": _is_ours(path) and _sha256(path) == sha256}


def _is_ours(path: str) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _sha256(path: str) -> str:
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()

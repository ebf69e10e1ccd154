"""What this machine has: the interpreter that will train and its packages, disk, GPUs, clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

from . import proc
from .errors import Refused
from .folder import absolute

PYTHON_TIMEOUT_S = 20
GPU_TIMEOUT_S = 10
# Runs on any Python that has argv and json, so that one too old to train can still be named.
_ASK_PYTHON = """
import json, sys
try:
    from importlib.metadata import version
except ImportError:
    version = None
found = {"python": ".".join(map(str, sys.version_info[:3])), "executable": sys.executable, "packages": {}}
for name in sys.argv[1:]:
    try:
        found["packages"][name] = version(name) if version else None
    except Exception:
        found["packages"][name] = None
print(json.dumps(found))
"""
_GPU_QUERY = "name,index,memory.total,memory.used,utilization.gpu"
_GPU_NUMBERS = ("index", "memory_total_mib", "memory_used_mib", "utilization_pct")


def hello(op: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "now": time.time(),
        "uid": os.getuid(),
        "pid": os.getpid(),
        **proc.incarnation(),
    }


def probe(op: Dict[str, Any]) -> Dict[str, Any]:
    """`python`, versions of its `packages` (null: not there), `disk_free_bytes` of `workdir`, `gpus` if asked."""
    found = _ask_python(op["python"], op.get("packages", []), op.get("env", {}))
    disk = os.statvfs(_nearest_folder(absolute(op["workdir"])))
    found["disk_free_bytes"] = disk.f_bavail * disk.f_frsize
    if op.get("gpus"):
        found["gpus"] = _gpus()
    return found


def _ask_python(python: str, packages: List[str], env: Dict[str, str]) -> Dict[str, Any]:
    try:
        done = subprocess.run(
            [python, "-", *packages],
            input=_ASK_PYTHON.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            cwd="/",
            timeout=PYTHON_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise Refused("%s gave no answer within %d s" % (python, PYTHON_TIMEOUT_S)) from None
    except OSError as e:
        raise Refused("there is no python at %s (%s)" % (python, e.strerror)) from None
    try:
        found = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise Refused("%s is no python that works: %s" % (python, said[-1][:200])) from None
    return dict(found)


def _gpus() -> Optional[List[Dict[str, Any]]]:
    """One for each line of nvidia-smi, null for a figure that it does not know; None where it cannot be asked."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=" + _GPU_QUERY, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GPU_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    rows = [line.split(", ") for line in done.stdout.decode("utf-8", "replace").splitlines()]
    return [
        {"name": row[0], **{key: int(cell) if cell.isdigit() else None for key, cell in zip(_GPU_NUMBERS, row[1:])}}
        for row in rows
        if len(row) == 1 + len(_GPU_NUMBERS)
    ]


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path

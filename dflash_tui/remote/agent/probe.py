"""Quick questions before something is started: the interpreter that will train and its packages, disk, clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Dict, List

from . import proc
from .errors import Refused
from .folder import absolute

PYTHON_TIMEOUT_S = 20
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


def hello(op: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "now": time.time(),
        "uid": os.getuid(),
        "pid": os.getpid(),
        **proc.incarnation(),
    }


def probe(op: Dict[str, Any]) -> Dict[str, Any]:
    """`python`, its `executable`, the versions of its `packages` (null: not there), `disk_free_bytes` of `workdir`."""
    found = ask_python(op["python"], op.get("packages", []), op.get("env", {}))
    disk = os.statvfs(_nearest_folder(absolute(op["workdir"])))
    found["disk_free_bytes"] = disk.f_bavail * disk.f_frsize
    return found


def find_paths(op: Dict[str, Any]) -> Dict[str, Any]:
    """Which of `paths` are `missing`: not there, not to be read by us, or not absolute and so nowhere."""
    return {"missing": [path for path in op["paths"] if not (os.path.isabs(path) and os.access(path, os.R_OK))]}


def ask_python(python: str, packages: List[str], env: Dict[str, str]) -> Dict[str, Any]:
    return ask_program(python, _ASK_PYTHON, packages, env, PYTHON_TIMEOUT_S)


def ask_program(python: str, program: str, words: List[str], env: Dict[str, str], timeout_s: float) -> Dict[str, Any]:
    """The JSON that a program of ours prints, run by an interpreter of theirs. Refused says why there is none."""
    try:
        done = subprocess.run(
            [python, "-", *words],
            input=program.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            cwd="/",
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise Refused("%s gave no answer within %d s" % (python, timeout_s)) from None
    except OSError as e:
        raise Refused("there is no python at %s (%s)" % (python, e.strerror)) from None
    try:
        # Behind what a package may print when it is imported.
        found = json.loads(done.stdout.strip().rpartition(b"\n")[2])
    except ValueError:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise Refused("%s is no python that works: %s" % (python, said[-1][:200])) from None
    return dict(found)


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path

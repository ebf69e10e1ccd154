"""What stands for or against training on this machine, as facts; what they mean is for the other side to say."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Optional

from . import gpus
from .errors import Refused, sentence
from .folder import RUNS, absolute
from .mounts import file_system
from .probe import ask_program, ask_python
from .state import ALIVE, statuses

_TORCH_TIMEOUT_S = 60
_BUS_TIMEOUT_S = 5
_LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "KillUserProcesses")
_ASK_TORCH = """
import json, torch
found = {"version": torch.__version__, "cuda": torch.version.cuda, "devices": 0, "error": None}
try:
    found["devices"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
except Exception as e:
    found["error"] = str(e)
print(json.dumps(found))
"""

Json = Dict[str, Any]


def check(op: Json) -> Json:
    """Facts on this machine; one that cannot be known is null. Importing torch may take a minute."""
    asking = gpus.Asking()
    workdir = absolute(op["workdir"])
    packages = op["packages"]
    facts: Json = {
        "now": time.time(),
        "uid": os.getuid(),
        "user": _user(),
        "shell": _shell(),
        "interpreter": _or_why(lambda: ask_python(op["python"], packages, op["env"])),
        "torch": _or_why(lambda: _torch(op["python"], op["env"])),
        "disk": _disk(workdir),
        "lock": _lock(workdir),
        "memory": _memory(),
        "load": os.getloadavg()[0],
        "cpus": len(os.sched_getaffinity(0)),
        "kill_user_processes": _kills_user_processes(),
        "has_pct": os.path.exists("/usr/sbin/pct"),
    }
    facts.update(overview(op, asking))
    return facts


def overview(op: Json, asking: Optional[gpus.Asking] = None) -> Json:
    """What a list of machines shows: quick, but for a slow nvidia-smi."""
    asking = asking or gpus.Asking()
    runs = statuses(op["workdir"])["runs"]
    disk = _disk(absolute(op["workdir"]))
    return {
        "runs": [run["run_id"] for run in runs],
        "living": [run["run_id"] for run in runs if run["state"] in ALIVE],
        "disk_free_bytes": disk["free_bytes"],
        "memory": _memory(),
        **asking.wait(),
    }


def _or_why(ask: Any) -> Json:
    try:
        return {**ask(), "why": None}
    except Refused as e:
        return {"why": str(e)}


def _torch(python: str, env: Dict[str, str]) -> Json:
    return ask_program(python, _ASK_TORCH, [], env, _TORCH_TIMEOUT_S)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _shell() -> Optional[str]:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or None
    except KeyError:
        return None


def _disk(path: str) -> Json:
    found = os.statvfs(path)
    return {
        "free_bytes": found.f_bavail * found.f_frsize,
        "free_files": found.f_favail if found.f_files else None,
        "is_read_only": bool(found.f_flag & os.ST_RDONLY),
        "is_noexec": bool(found.f_flag & os.ST_NOEXEC),
        "kind": file_system(path),
        "why_not_written": _why_not_written(path),
    }


def _why_not_written(path: str) -> Optional[str]:
    try:
        with tempfile.TemporaryFile(dir=path) as f:
            f.write(b"x" * 4096)
            f.flush()
            os.fsync(f.fileno())
    except OSError as e:
        return sentence(e)
    return None


def _lock(workdir: str) -> Json:
    """Whether a lock of one opener keeps out another: what tells a living supervisor from a dead one."""
    try:
        os.makedirs(os.path.join(workdir, RUNS), mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=os.path.join(workdir, RUNS), prefix=".lock-") as f:
            fcntl.flock(f.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            second = os.open(f.name, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return {"works": True, "why": None}
            finally:
                os.close(second)
    except OSError as e:
        return {"works": False, "why": sentence(e)}
    return {"works": False, "why": "a lock keeps nobody out there"}


def _memory() -> Json:
    """Bytes in all, and those that a program can get; in a container its own, where lxcfs tells them."""
    found: Dict[str, int] = {}
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                name, _, value = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    found[name] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return {"total_bytes": found.get("MemTotal"), "available_bytes": found.get("MemAvailable")}


def _kills_user_processes() -> Optional[bool]:
    """Whether this machine ends what a user left running when he logs out. None: nobody here would."""
    if os.getuid() == 0 or not os.path.isdir("/run/systemd/system"):
        return None
    said = _said(["busctl", "get-property", *_LOGIND])
    if said is None or "true" not in said.split():
        return None if said is None else False
    lingers = _said(["loginctl", "show-user", _user(), "--property=Linger", "--value"])
    return (lingers or "").strip() != "yes"


def _said(argv: List[str]) -> Optional[str]:
    if not shutil.which(argv[0]):
        return None
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_BUS_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

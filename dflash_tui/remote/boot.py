"""Finds out where the agent goes on a machine, and whether it is there. Never imported: sent to a Python's stdin.

Takes a workdir and the agent's file name, `<sha256>.pyz`; prints one line of JSON behind a mark. Written for any
Python, so that one too old for the agent can be named instead of failing with a syntax error.
"""

import errno
import hashlib
import json
import os
import sys


def main(workdir, name):  # type: ignore[no-untyped-def]
    workdir = os.path.abspath(os.path.expanduser(workdir))
    folder = os.path.join(workdir, "dflash-agent")
    path = os.path.join(folder, name)
    venv = os.path.join(workdir, "venv", "bin", "python")
    found = {
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "venv": venv if os.access(venv, os.X_OK) else None,
        "has_proc": os.path.exists("/proc/self/stat"),
        "workdir": workdir,
        "path": path,
        "there": False,
        "error": None,
    }
    try:
        os.umask(0o077)
        try:
            os.makedirs(folder)
        except OSError:
            if not os.path.isdir(folder):
                raise
        for place in (folder, path):
            if os.path.lexists(place) and (os.lstat(place).st_uid != os.getuid() or os.lstat(place).st_mode & 0o022):
                found["error"] = place + " is not ours alone to write in: remove it, or choose another workdir"
        if os.path.isfile(path):
            with open(path, "rb") as f:
                found["there"] = hashlib.sha256(f.read()).hexdigest() == name.split(".")[0]
    except (OSError, IOError) as e:  # Two kinds in Python 2.
        cure = "make room there" if e.errno in (errno.ENOSPC, errno.EDQUOT) else "choose another workdir"
        found["error"] = "%s: %s; %s" % (folder, e.strerror, cure)
    print("\n@dflash-agent boot " + json.dumps(found))


main(sys.argv[1], sys.argv[2])  # type: ignore[no-untyped-call]

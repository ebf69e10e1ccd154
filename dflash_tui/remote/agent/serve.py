"""The agent's life: requests in on stdin, answers out on stdout, gone when nobody asks any more."""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import adopted, code, gpus, logs, machine, probe, scripts
from .errors import DAMAGE, Refused, sentence
from .execute import execute
from .folder import Run
from .start import launch
from .state import status, statuses
from .stop import stop
from .supervisor import Supervisor

# Comes before the first answer: what a login shell prints on the way here is told apart by it.
READY = b"\n@dflash-agent ready\n"
# A link that is cut gives no end of file; without this its agent would stay for ever.
IDLE_S = 90.0
REQUEST_BYTES = 1 << 26

Op = Dict[str, Any]
_OPS: Dict[str, Callable[[Op], Dict[str, Any]]] = {
    "hello": probe.hello,
    "probe": probe.probe,
    "find-paths": probe.find_paths,
    "find-code": code.find,
    "unpack": code.unpack,
    "find-script": scripts.find,
    "check": machine.check,
    "overview": machine.overview,
    "gpus": gpus.sample,
    "look": adopted.look,
    "adopt": adopted.adopt,
    "launch": launch,
    "status": lambda op: status(Run(op["workdir"], op["run_id"])),
    "stop": stop,
    "list": lambda op: statuses(op["workdir"]),
}
_READERS: Dict[str, Callable[[Op, int], Tuple[Dict[str, Any], bytes]]] = {"read": logs.read, "follow": logs.follow}


def main(argv: List[str]) -> None:
    os.umask(0o077)
    # Detached supervisors run with another working directory, and start from this name.
    sys.argv[0] = os.path.abspath(argv[0])
    verb, words = argv[1], argv[2:]
    if verb in ("serve", "execute"):
        _write(READY)
        {"serve": serve, "execute": execute}[verb](float(words[0]) if words else IDLE_S)
        return
    workdir, run_id, number, lock, tell = words
    os.set_inheritable(int(lock), False)
    supervisor = Supervisor(Run(workdir, run_id).attempt(int(number)))
    if verb == "supervise":
        supervisor.supervise(int(tell))
    else:
        supervisor.take_over(int(tell))


def serve(idle_s: float) -> None:
    """Answer until stdin ends, or until nothing has been asked for `idle_s` seconds."""
    for line in _lines(idle_s):
        request = json.loads(line)
        budget = logs.ANSWER_BYTES
        results, blobs = [], []
        for op in request["ops"]:
            result, blob = _do(op, budget)
            budget -= len(blob)
            results.append(result)
            blobs.append(blob)
        answer = {"id": request["id"], "results": results, "blobs": [len(blob) for blob in blobs]}
        _write(json.dumps(answer).encode() + b"\n" + b"".join(blobs))


def _do(op: Op, budget: int) -> Tuple[Dict[str, Any], bytes]:
    name = op["op"]
    try:
        if name in _READERS:
            return _READERS[name](op, max(0, budget))
        return _OPS[name](op), b""
    except Refused as e:
        return {"error": str(e)}, b""
    except OSError as e:
        return {"error": sentence(e)}, b""
    except DAMAGE as e:
        # One run's damaged file must not end the agent of all of them.
        what = "run %s: a file of its newest attempt" % op["run_id"] if "run_id" in op else "%s: what it read" % name
        return {"error": "%s is damaged (%s: %s)" % (what, type(e).__name__, e)}, b""


def _lines(idle_s: float) -> Iterator[bytes]:
    pending = b""
    while select.select([0], [], [], idle_s)[0]:
        data = os.read(0, 1 << 16)
        if not data or len(pending) > REQUEST_BYTES:
            return
        pending += data
        while b"\n" in data:
            line, _, pending = pending.partition(b"\n")
            data = pending
            yield line


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]

"""Processes that need not import first: each is forked from one that has its modules loaded and did nothing else.

Each is a process all the same, with its own streams, environment, folder, locks and end. But how an interpreter begins,
what it loads and what memory it takes is not to be seen here: a test of that starts an interpreter.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
# Nothing here takes as long; what does is killed.
_LONGEST_S = 120


class Preloaded:
    """Runs modules as `python -m` does, as many at a time as there are threads that ask."""

    def __init__(self, *modules: str) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-m", "tests.preloaded", *modules]
            env = {**os.environ, "PYTHONUNBUFFERED": "1"}
            # Pipes from the start: Python looks but once whether a stream can seek.
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            self._process = subprocess.Popen(argv, stdin=theirs, cwd=ROOT, env=env, text=True, **pipes)
        atexit.register(self._leave)
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line == "ready\n", line + self._process.stdout.read()

    def run(
        self, module: str, *words: str, stdin: str = "", env: Mapping[str, str] = os.environ
    ) -> subprocess.CompletedProcess[str]:
        """To its end, in this folder, with pipes at its three streams."""
        (its_stdin, ours), *answers = [os.pipe() for _ in range(4)]
        theirs = [its_stdin, *(its for _, its in answers)]
        order = {"module": module, "words": words, "env": dict(env), "folder": str(Path.cwd())}
        socket.send_fds(self._orders, [json.dumps(order).encode()], theirs)
        for end in theirs:
            os.close(end)
        with ThreadPoolExecutor() as pool:
            pool.submit(_write, ours, stdin)
            out, err, code = pool.map(_read, (ours for ours, _ in answers))
        return subprocess.CompletedProcess([module, *words], int(code), out, err)

    def _leave(self) -> None:
        self._orders.close()
        self._process.communicate()


def _write(end: int, text: str) -> None:
    with suppress(BrokenPipeError), open(end, "w") as file:
        file.write(text)


def _read(end: int) -> str:
    with open(end) as file:
        return file.read()


def _serve(orders: socket.socket) -> None:
    """A process for each order, and one that waits for it and tells its exit code."""
    while True:
        text, ends, _, _ = socket.recv_fds(orders, 1 << 18, 4)
        if not text:
            return
        if os.fork() == 0:
            orders.close()
            *streams, answer = ends
            if pid := os.fork():
                _wait(pid, streams, answer)
            os.close(answer)
            _run(json.loads(text), streams)
        for end in ends:
            os.close(end)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _wait(pid: int, streams: list[int], answer: int) -> NoReturn:
    for stream in streams:
        os.close(stream)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(_LONGEST_S)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(answer, str(code).encode())
    os._exit(0)


def _run(order: dict[str, Any], streams: list[int]) -> NoReturn:
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = order["words"]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    # Else the first search for garbage in each process would copy all that was loaded.
    gc.freeze()
    print("ready")
    _serve(socket.socket(fileno=os.dup(0)))

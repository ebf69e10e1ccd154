"""As many processes as a run asks for, each a `python -m trainer` of its own: torchrun for one machine, and no more.

torchrun works too, but ends with 1 whatever its processes end with, and gives a run that is stopped 30 s to save.
Standard library only: this process never imports torch.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from trainer.config import Config
from trainer.errors import PeerLostError

# How long processes whose companion is gone may take to end by themselves.
_GRACE_S = 20.0


def is_launched() -> bool:
    """Whether this process is one of several already, by us or by torchrun."""
    return "RANK" in os.environ


def num_processes(config: Config) -> int:
    """As many as the config says; "auto" is one for each GPU that CUDA_VISIBLE_DEVICES names, else one.

    It is one too where the target has GPUs of its own.
    """
    wanted = config["processes"]
    if wanted != "auto" or config["target_gpus"]:
        return 1 if wanted == "auto" else int(wanted)
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return len(named) if config["device"] != "cpu" and len(named) > 1 else 1


def launch(arguments: Sequence[str], count: int) -> int:
    """Runs `count` processes of the trainer to their end; returns 0, or the exit code of the first that failed."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    for rank in range(count):
        environment = {**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        processes.append(subprocess.Popen([sys.executable, "-m", "trainer", *arguments], env=environment))
    return _wait(processes)


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    deadline = float("inf")
    while None in [process.poll() for process in processes]:
        if deadline == float("inf") and _code(processes):
            # One that stopped and saved lets the others do so; one that failed is waited for in vain.
            deadline = time.monotonic() + _GRACE_S
        if time.monotonic() > deadline:
            # Before the rest is killed: what ended by itself tells why.
            code = _code(processes)
            for process in processes:
                process.kill()
                process.wait()
            return code
        time.sleep(0.05)
    return _code(processes)


def _code(processes: list[subprocess.Popen[bytes]]) -> int:
    """That of the first that failed by itself, else of one that only lost another; a signal's number as shells have it.

    0 if none has failed.
    """
    codes = [p.returncode if p.returncode > 0 else 128 - p.returncode for p in processes if p.returncode]
    return next((code for code in codes if code != PeerLostError.exit_code), codes[0] if codes else 0)

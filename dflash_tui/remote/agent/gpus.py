"""What nvidia-smi says of this machine's GPUs, and whose processes are on them. Figures it does not know are null.

It may take seconds, and hang for ever behind a broken driver: a sweep of logs never waits for it. It works beside the
agent, and its answer is handed out with a later request.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import Any, Dict, List, Optional, Tuple

from . import proc
from .errors import DAMAGE, Refused
from .folder import MARK, Run

TIMEOUT_S = 10.0
# A driver alone takes some; what is beyond that is somebody's.
IDLE_MIB = 500
_FIGURES = ("memory_used_mib", "memory_total_mib", "utilization_pct", "temperature_c", "power_w")
_GPU_QUERY = "index,uuid,name,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw"
_APP_QUERY = "gpu_uuid,pid,used_memory,process_name"
# A service's PATH may lack the places of containers and of WSL.
_PLACES = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib")

Json = Dict[str, Any]


class Asking:
    """nvidia-smi at work: for the cards, and for the processes on them."""

    def __init__(self) -> None:
        self.begun = time.time()
        self._since = time.monotonic()
        tool = shutil.which("nvidia-smi", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_PLACES]))
        self._asked = (
            [_ask(tool, "--query-gpu=" + _GPU_QUERY), _ask(tool, "--query-compute-apps=" + _APP_QUERY)] if tool else []
        )

    @property
    def is_over(self) -> bool:
        is_late = time.monotonic() - self._since > TIMEOUT_S
        return is_late or all(asked.poll() is not None for asked in self._asked)

    def wait(self) -> Json:
        """As `answer`, once it is there."""
        while not self.is_over:
            time.sleep(0.02)
        return self.answer()

    def answer(self) -> Json:
        """`gpus` with the `processes` on each; else null and `why`. Once `is_over`."""
        if not self._asked:
            return {"gpus": None, "why": "no nvidia-smi here"}
        late = [asked for asked in self._asked if asked.poll() is None]
        for asked in late:
            asked.kill()
        if late:
            return {"gpus": None, "why": "nvidia-smi gives no answer within %d s" % TIMEOUT_S}
        cards, apps = [asked.communicate()[0].decode("utf-8", "replace") for asked in self._asked]
        if self._asked[0].returncode != 0:
            lines = cards.strip().splitlines() or ["exit code %d" % self._asked[0].returncode]
            return {"gpus": None, "why": "nvidia-smi: %s" % lines[-1][:200]}
        processes = _processes(apps if self._asked[1].returncode == 0 else "")
        found = [_card(row, processes) for row in _rows(cards, 8)]
        return {"gpus": found, "why": None if found else "nvidia-smi knows no GPU"}


_asking: Optional[Asking] = None
_newest: Optional[Tuple[float, Json]] = None


def sample(op: Json) -> Json:
    """The newest answer, if it is newer than `since` (unix seconds here), with the GPUs of each of `runs`.

    A new one is asked for when the newest is older than `every_s`.
    """
    global _asking, _newest
    if _asking is None and (_newest is None or time.time() - _newest[0] >= float(op["every_s"])):
        _asking = Asking()
    asking = _asking
    if asking is not None and asking.is_over:
        _newest = (asking.begun, asking.answer())
        _asking = None
    if _newest is None or _newest[0] <= float(op.get("since") or 0.0):
        return {"time": None}
    begun, found = _newest
    runs = {}
    for run_id in op["runs"]:
        try:
            runs[run_id] = _gpus_of(Run(op["workdir"], run_id), found["gpus"] or [])
        except (Refused, OSError, *DAMAGE):
            continue
    return {"time": begun, "age_s": max(0.0, time.time() - begun), **found, "runs": runs}


def _ask(tool: str, query: str) -> subprocess.Popen[bytes]:
    # Its output is less than a pipe holds, unless it is none of a GPU: then it is killed when its time is over.
    return subprocess.Popen(
        [tool, query, "--format=csv,noheader,nounits"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _rows(text: str, size: int) -> List[List[str]]:
    """Only the last cell of a row may hold a comma."""
    rows = [[cell.strip() for cell in line.split(",", size - 1)] for line in text.splitlines()]
    return [row for row in rows if len(row) == size]


def _processes(text: str) -> Dict[str, List[Json]]:
    found: Dict[str, List[Json]] = {}
    for uuid, pid, memory, name in _rows(text, 4):
        if pid.isdigit():
            one = {"pid": int(pid), "memory_mib": _number(memory), "name": name[:200], "run": _run_of(int(pid))}
            found.setdefault(uuid, []).append(one)
    return found


def _card(row: List[str], processes: Dict[str, List[Json]]) -> Json:
    index, uuid, name, *figures = row
    return {
        "index": int(index) if index.isdigit() else None,
        "uuid": uuid,
        "name": name[:200],
        **dict(zip(_FIGURES, map(_number, figures))),
        "processes": processes.get(uuid, []),
    }


def _number(cell: str) -> Optional[float]:
    """None for [N/A], [Not Supported] and whatever else stands there instead."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None


def _run_of(pid: int) -> Optional[str]:
    """The run that a process belongs to, by the mark that it carries; of a pid that is not ours to see, None."""
    begin = os.fsencode(MARK) + b"="
    folder = next((entry[len(begin) :] for entry in proc.environ(pid) if entry.startswith(begin)), b"")
    return os.path.basename(os.fsdecode(folder)) or None


def _gpus_of(run: Run, cards: List[Json]) -> List[List[Any]]:
    """Index of each GPU that the run is on, and the memory that it has there.

    Where a container hides the processes, those that somebody uses and that the run may use; the memory is null then.
    """
    adopted = _family(run)
    found = []
    for card in cards:
        mine = [p for p in card["processes"] if p["run"] == run.run_id or p["pid"] in adopted]
        if mine:
            known = [p["memory_mib"] for p in mine if p["memory_mib"] is not None]
            found.append([card["index"], sum(known) if known else None])
    if found:
        return found
    visible = _visible(run)
    return [
        [card["index"], None]
        for card in cards
        if not card["processes"] and (card["memory_used_mib"] or 0) > IDLE_MIB
        if visible is None or str(card["index"]) in visible or card["uuid"] in visible
    ]


def _family(run: Run) -> List[int]:
    """The pids of a run that carries no mark, because it was not started from here."""
    state = run.attempt(max(run.attempts(), default=1)).read("state.json") or {}
    if "adopted" not in state or not state["child"]:
        return []
    leader = proc.Process(*state["child"])
    return [leader.pid, *proc.descendants(leader.pid)] if proc.is_alive(leader) else []


def _visible(run: Run) -> Optional[List[str]]:
    """What CUDA_VISIBLE_DEVICES limits the run to; None for no limit."""
    spec = run.attempt(max(run.attempts(), default=1)).read("spec.json") or {}
    words = spec.get("env", {}).get("CUDA_VISIBLE_DEVICES")
    return None if words is None else [word.strip() for word in str(words).split(",")]

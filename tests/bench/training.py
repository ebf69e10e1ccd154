"""A step of our trainer against a step of speculators' and of SpecForge's: the same target, data, blocks and anchors.

Each trains in a process of its own, on as many threads; they take turns, and nobody else steps meanwhile. A step is
everything from tokens to new weights, the target's forward pass included. What theirs leaves out, ours does not: counts
for the log, and clipping that tells the norm.
"""

import json
import math
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import peers
from tests.bench.rows import PROGRAMS, ROOT, Row, at_least, measured

_LIMITS = {"trainer_step": 1.8, "trainer_step_demo": 1.4}
_PEERS = ("speculators", "specforge")
_ROUNDS, _STEPS, _WARM_STEPS = 7, 6, 3


@dataclass
class Trainer:
    """One process, and what it has answered. `floor_ms`: what it says that a step's products alone would take."""

    name: str
    process: subprocess.Popen[str]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    mib: float = 0.0
    floor_ms: float = math.inf

    @classmethod
    def start(cls, name: str, shape: str, python: str | Path) -> "Trainer":
        threads = str(os.cpu_count())
        # Threads wait as torch lets them, which is what a run of ours does too on a machine with nothing else to do.
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        argv = [python, PROGRAMS / f"steps_{name}.py", shape, threads]
        pipe = subprocess.PIPE
        return cls(name, subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, text=True))

    def wait(self) -> None:
        """Until it can step. NoPeerError when a peer cannot; that ours does is no question."""
        assert self.process.stdout
        said = self.process.stdout.readline()
        if not said and self.name != "ours":
            raise peers.NoPeerError(f"{self.name} ended before its first step; why is said above")

    def step(self, count: int) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.mib, self.floor_ms = answer["mib"], min(self.floor_ms, answer["floor_ms"])
        return answer

    def turn(self) -> None:
        answer = self.step(_STEPS)
        for key in ("step_s", "target_s", "cpu_s"):
            self.seconds.setdefault(key, []).extend(answer[key])

    def median_ms(self, key: str) -> float:
        return statistics.median(self.seconds[key]) * 1000

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def measure(folder: Path) -> list[Row]:
    try:
        pythons: dict[str, str | Path] = {"ours": sys.executable, **dict.fromkeys(_PEERS, peers.trainers())}
        return [row for shape in _LIMITS for row in _rows(shape, pythons)]
    except peers.NoPeerError as e:
        return [peers.missing(bar, e) for bar in (*_LIMITS, "trainer_memory")]


def _rows(shape: str, pythons: dict[str, str | Path]) -> list[Row]:
    with ExitStack() as stack:
        trainers = {}
        for name, python in pythons.items():
            trainers[name] = Trainer.start(name, shape, python)
            stack.callback(trainers[name].end)
        for trainer in trainers.values():
            trainer.wait()
            trainer.step(_WARM_STEPS)
        for _ in range(_ROUNDS):
            for trainer in trainers.values():
                trainer.turn()
    ours = trainers.pop("ours")
    best = min(trainers.values(), key=lambda trainer: trainer.median_ms("step_s"))
    rows = [_speed(shape, ours, best, trainers)]
    if shape == "trainer_step":
        rows.append(_memory(ours, trainers))
    return rows


def _speed(shape: str, ours: Trainer, best: Trainer, others: dict[str, Trainer]) -> Row:
    step, target = ours.median_ms("step_s"), ours.median_ms("target_s")
    alone = (best.median_ms("step_s") - best.median_ms("target_s")) / (step - target)
    each = ", ".join(f"{name} {trainer.median_ms('step_s'):.0f} ms" for name, trainer in others.items())
    note = (
        f"x the better one's tokens/s: ours {step:.0f} ms a step, {each}; CPU time {_times(best, ours, 'cpu_s'):.2f}x,"
        f" without the target {alone:.2f}x; the target's forward is {target / step:.0%} of our step;"
        f" {step / ours.floor_ms:.1f} times the floor of {ours.floor_ms:.0f} ms that its products alone would take"
    )
    return at_least(shape, _times(best, ours, "step_s"), _LIMITS[shape], note)


def _times(theirs: Trainer, ours: Trainer, key: str) -> float:
    return theirs.median_ms(key) / ours.median_ms(key)


def _memory(ours: Trainer, others: dict[str, Trainer]) -> Row:
    each = ", ".join(f"{name} {trainer.mib:.0f}" for name, trainer in others.items())
    least = min(trainer.mib for trainer in others.values())
    note = f"of the smaller one's peak over what stood there before the first step: ours {ours.mib:.0f} MiB, {each}"
    return measured("trainer_memory", ours.mib / least, 1.0, note)

"""One optimizer step: gradients of its micro-batches, added over all processes, and what was counted on the way.

The loss of a step is sum(w l) / sum(w) over everything in it: micro-batches of unequal length or weight are never
averaged. Owns no schedule, no log and no order of the data.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.batches import Batch, seed_for
from trainer.blocks import draw_anchors
from trainer.config import Config
from trainer.errors import is_out_of_memory
from trainer.metrics import Tally
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.step import Objective, noisy

# What a step is made of, in the order of `Step.made_of`.
PARTS = ("sequences", "tokens", "padded", "response", "spilled")


@dataclass
class Step:
    """What came of one optimizer step. `made_of` are sums over its batches; `seconds` are this process's."""

    counts: Tally
    made_of: dict[str, int]
    grad_norm: float = 0.0
    stepped: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    # This process's batches that did not fit into memory, in words; all processes' are counted in `made_of`.
    spilled: list[str] = field(default_factory=list)
    # Weighted sum of losses and sum of weights of the batches of each bucket, by its longest length.
    by_length: dict[int, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def num_spilled(self) -> int:
        return self.made_of["spilled"]

    @property
    def loss(self) -> float | None:
        """None if no slot was supervised."""
        return self.counts.losses()["loss"]

    @property
    def is_finite(self) -> bool:
        return (self.loss is None or math.isfinite(self.loss)) and math.isfinite(self.grad_norm)


class Engine:
    """The drafter's gradients and their steps."""

    def __init__(
        self, objective: Objective, optimizer: Optimizer, ranks: Ranks, config: Config, edges: Sequence[int] = ()
    ) -> None:
        """`edges` are the lengths that losses are told apart by, in rising order: each is the longest of a bucket."""
        self._objective, self._optimizer, self._ranks, self._config = objective, optimizer, ranks, config
        self._edges = edges
        self._notes: list[str] = []
        limit = config["max_grad_norm"]
        self.limit = math.inf if limit in (None, "none") else float(limit)
        self._device = objective.target.device
        dtype = config["draft_dtype"]
        self._in_bfloat16 = dtype == "bfloat16" or (dtype == "auto" and self._device.type == "cuda")

    def step(self, batches: Iterator[tuple[int, Batch]], lr: float, noise_std: float) -> Step:
        """Takes this process's (number, batch) pairs of the step; a step that is not finite changes no weight."""
        began = self._now()
        counts = Tally.empty(self._objective.block_size, self._device)
        sums = torch.zeros(len(PARTS), dtype=torch.float64, device=self._device)
        by_length = torch.zeros(len(self._edges), 2, dtype=torch.float64, device=self._device)
        seconds: dict[str, float] = {}
        spilled: list[str] = []
        self._optimizer.zero_grad()
        while True:
            with self._timed("data_wait_s", seconds):
                number, batch = next(batches, (0, None))
            if batch is None:
                break
            counted = self._fitting(number, batch, noise_std, seconds)
            if counted is None:
                spilled.append(f"{len(batch.tokens)} x {batch.tokens.shape[1]} tokens")
                sums[-1] += 1
            else:
                sums += torch.tensor(parts(batch), dtype=torch.float64, device=self._device)
                counts += counted
                if self._edges:
                    by_length[bisect_left(self._edges, batch.tokens.shape[1])] += counted.sums[:2]
        sizes = [len(counts.sums), len(PARTS), by_length.numel()]
        added = self._ranks.add(torch.cat((counts.sums, sums, by_length.flatten())))
        together, made, apart = torch.split(added, sizes)
        made_of = dict(zip(PARTS, map(int, made.tolist()), strict=True))
        lengths = dict(zip(self._edges, apart.view(-1, 2).tolist(), strict=True))
        step = Step(Tally(together), made_of, seconds=seconds, spilled=spilled, by_length=lengths, notes=self._notes)
        self._notes = []
        with self._timed("opt_s", seconds):
            self._apply(step, lr)
        seconds["step_time_s"] = self._now() - began
        return step

    def _fitting(self, number: int, batch: Batch, noise_std: float, seconds: dict[str, float]) -> Tally | None:
        """`_accumulate`; None, and no gradient of it, if the batch does not fit into memory."""
        try:
            return self._accumulate(number, batch, noise_std, seconds)
        except Exception as e:
            if not is_out_of_memory(e):
                said = self._objective.attention.give_up(e)
                if said is None:
                    raise
                self._notes.append(said)
                return self._fitting(number, batch, noise_std, seconds)
        # Only here have the frames gone that held the batch's tensors.
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        return None

    def _accumulate(self, number: int, batch: Batch, noise_std: float, seconds: dict[str, float]) -> Tally:
        """Adds the gradient of the batch's sum of losses; what is random in it follows from its number."""
        config, seed = self._config, self._config["seed"]
        with self._timed("target_fwd_s", seconds):
            features, _ = self._objective.features(batch)
        noise = torch.Generator(self._device).manual_seed(seed_for(seed, "noise", number))
        features = noisy(features, config["noise.kind"], noise_std, config["noise.on"], noise)
        lottery = torch.Generator().manual_seed(seed_for(seed, "anchors", number))
        with self._timed("fwd_s", seconds), torch.autocast(self._device.type, torch.bfloat16, self._in_bfloat16):
            anchors = draw_anchors(batch.response, config["num_anchors"], lottery, batch.begins)
            summed, counts = self._objective.loss(batch, features, anchors)
        with self._timed("bwd_s", seconds):
            # All of them or none: backward() would leave some added if memory ran out on the way.
            held = list(self._objective.drafter.parameters())
            gradients = torch.autograd.grad(summed, held, allow_unused=True)
            for parameter, gradient in zip(held, gradients, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return counts

    def _apply(self, step: Step, lr: float) -> None:
        parameters = list(self._objective.drafter.parameters())
        weight = step.counts.weight
        if weight == 0:
            return
        self._ranks.add_gradients(parameters, weight)
        step.grad_norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.limit))
        if step.is_finite:
            self._optimizer.step(lr)
            step.stepped = True

    @contextmanager
    def _timed(self, key: str, seconds: dict[str, float]) -> Iterator[None]:
        began = self._now()
        yield
        seconds[key] = seconds.get(key, 0.0) + self._now() - began

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def parts(batch: Batch) -> list[int]:
    """`PARTS` of one batch."""
    return [batch.num_sequences, int(batch.lengths.sum()), batch.tokens.numel(), int(batch.response.sum()), 0]


def nonfinite_rows(taps: Tensor) -> list[int]:
    """Rows of a batch whose features are not finite."""
    whole = taps.isfinite().flatten(1).all(1)
    return [row for row, fine in enumerate(whole.tolist()) if not fine]


def be_exact(device: str) -> None:
    """On a CPU every sum has one order, so that a run that goes on is bit for bit the run that never stopped."""
    torch.use_deterministic_algorithms(device == "cpu" or not torch.cuda.is_available())
    # Nothing here reads memory before it is written: filling it with NaN first takes 3 % of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]

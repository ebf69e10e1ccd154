"""One forward pass of the objective over a batch: features, anchors, blocks, drafter, score."""

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.batches import Batch
from trainer.blocks import Anchors, cut, visible
from trainer.loss import score
from trainer.metrics import Tally
from trainer.model import Drafter, attend_dense
from trainer.structured import attend_structured
from trainer.target import Target


@dataclass(frozen=True)
class Objective:
    """What stays the same over a run."""

    target: Target
    drafter: Drafter
    block_size: int
    gamma: float

    def features(self, batch: Batch) -> tuple[Tensor, float]:
        """The target's features of the batch, and the seconds they took."""
        began = time.perf_counter()
        taps = self.target.features(batch.tokens)
        return taps, time.perf_counter() - began

    def loss(self, batch: Batch, taps: Tensor, anchors: Anchors) -> tuple[Tensor, Tally]:
        """The loss over the blocks at `anchors`, with a gradient for the drafter, and what it got right.

        `taps` are all that the drafter knows of the target; labels come from the tokens alone.
        """
        target = self.target
        blocks = cut(batch.tokens, batch.response, anchors, self.block_size, target.mask_token_id)
        num_context = batch.tokens.shape[1]
        device = batch.tokens.device
        context = self.drafter.context(taps, target.rotary(torch.arange(num_context, device=device)[None]))
        if device.type == "cpu":
            attend = attend_structured(anchors, self.block_size)
        else:
            attend = attend_dense(visible(anchors, num_context, self.block_size))
        hidden = self.drafter(
            target.embed(blocks.inputs.flatten(1)), target.rotary(blocks.positions.flatten(1)), context, attend
        )
        return score(target, hidden, blocks, self.gamma)


def noisy(taps: Tensor, kind: str, std: float, generator: torch.Generator) -> Tensor:
    """`taps` with noise of the given standard deviation added; `taps` themselves stay as they are."""
    if kind == "none" or std == 0.0:
        return taps
    if kind == "gaussian":
        noise = torch.randn(taps.shape, generator=generator)
    else:
        noise = (torch.rand(taps.shape, generator=generator) * 2 - 1) * math.sqrt(3)
    return taps + std * noise.to(taps.device)

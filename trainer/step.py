"""One forward pass of the objective over a batch: features, anchors, blocks, drafter, score."""

import math
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.attention import Attention
from trainer.batches import Batch
from trainer.blocks import Anchors, cut
from trainer.loss import Scoring, score
from trainer.metrics import Tally
from trainer.model import Drafter
from trainer.target import Features, Target


@dataclass(frozen=True)
class Objective:
    """What stays the same over a run. `from_final`: the target's final states make the labels, not the tokens."""

    target: Target
    drafter: Drafter
    block_size: int
    scoring: Scoring
    from_final: bool = False
    attention: Attention = field(default_factory=Attention)

    def features(self, batch: Batch) -> tuple[Features, float]:
        """The target's features of the batch, and the seconds they took."""
        began = time.perf_counter()
        features = batch.features or self.target.features(batch.tokens, batch.begins, final=self.from_final)
        return features, time.perf_counter() - began

    def loss(self, batch: Batch, features: Features, anchors: Anchors) -> tuple[Tensor, Tally]:
        """The weighted sum of losses over the blocks at `anchors`, with a gradient for the drafter, and the counts.

        `features.taps` are all that the drafter knows of the target. Labels come from the tokens, or from
        `features.final` where it is there. The loss of a batch is the sum over the counts' `weight`.
        """
        return self._scored(batch, features, anchors)[:2]

    def runs(self, batch: Batch, features: Features, anchors: Anchors) -> Tensor:
        """How many slots of each block are right without a gap: [sequences, blocks]."""
        return self._scored(batch, features, anchors)[2]

    def _scored(self, batch: Batch, features: Features, anchors: Anchors) -> tuple[Tensor, Tally, Tensor]:
        target = self.target
        blocks = cut(batch, anchors, self.block_size, target.mask_token_id)
        context = self.drafter.context(features.taps, target.rotary(batch.positions))
        hidden = self.drafter(
            target.embed(blocks.tokens),
            target.rotary(blocks.positions.flatten(1)),
            context,
            self.attention.attends(anchors, batch.tokens.shape[1], self.block_size, set(self.drafter.shape.windows)),
            blocks.spread,
            blocks.keep,
        )
        return score(target, hidden, blocks, features.final, self.scoring)


def noisy(features: Features, kind: str, std: float, on: str, generator: torch.Generator) -> Features:
    """`features` with noise of the given standard deviation; those that come in stay as they are.

    On the taps alone the noise reaches no label. On "all" it reaches the final states too: a fault that real trainers
    had, kept to be looked at.
    """
    if kind == "none" or std == 0.0:
        return features

    def heard(clean: Tensor) -> Tensor:
        if kind == "gaussian":
            noise = torch.randn(clean.shape, generator=generator, device=clean.device)
        else:
            noise = (torch.rand(clean.shape, generator=generator, device=clean.device) * 2 - 1) * math.sqrt(3)
        return clean + std * noise.to(clean.dtype)

    taps = heard(features.taps)
    if features.final is None or on != "all":
        return Features(taps, features.final)
    return Features(taps, heard(features.final))

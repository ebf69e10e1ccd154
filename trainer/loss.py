"""The objective: cross-entropy against the tokens that the target wrote, near slots weighing more than far ones."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.blocks import Blocks
from trainer.metrics import Tally, tally
from trainer.target import Target

# What the weighted sum is divided by; trainers differ, and so do their losses.
LOSS_NORM = "sum_w"


def auto_gamma(block_size: int) -> float:
    """The paper's values for blocks of 16, 10 and 8 tokens, each also for the sizes up to the next."""
    return 7.0 if block_size >= 16 else 5.0 if block_size >= 10 else 4.0


def slot_weights(block_size: int, gamma: float) -> Tensor:
    """exp(-(k-1)/gamma) for slot k, and 0 for the anchor."""
    return torch.tensor([0.0] + [math.exp(-(k - 1) / gamma) for k in range(1, block_size)])


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """sum(w l) / sum(w); 0 where no slot counts, with a gradient of 0."""
    total = weights.sum()
    return (losses * weights).sum() / torch.where(total > 0, total, torch.ones_like(total))


def score(target: Target, hidden: Tensor, blocks: Blocks, gamma: float) -> tuple[Tensor, Tally]:
    """The loss over the drafter's final `hidden` [sequences, blocks * block_size, hidden], and what it got right.

    The head runs over supervised slots only.
    """
    labels, supervised = blocks.labels, blocks.supervised
    logits = target.logits(hidden.view(*labels.shape, -1)[supervised])
    wanted = labels[supervised]
    losses = F.cross_entropy(logits, wanted, reduction="none")
    weights = slot_weights(labels.shape[-1], gamma).to(hidden.device).expand_as(labels)[supervised]
    with torch.no_grad():
        ranks = (logits > logits.gather(1, wanted[:, None])).sum(1)
        confidence = (logits.amax(1) - logits.logsumexp(1)).exp()
        # Every slot of every block again; what is not supervised stays 0 and is not looked at.
        grids = [
            torch.zeros(labels.shape, dtype=flat.dtype, device=flat.device).masked_scatter(supervised, flat)[..., 1:]
            for flat in (ranks, confidence)
        ]
        counts = tally(supervised[..., 1:].flatten(0, 1), grids[0].flatten(0, 1), grids[1].flatten(0, 1))
    return weighted_mean(losses, weights), counts

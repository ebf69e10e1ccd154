"""The frozen head under the loss: scores against the vocabulary, a stretch of slots at a time.

The scores of all slots never exist together: 512 blocks of 16 over 152K tokens would be 5 GB for one sequence.
The head is not trained, so the gradient of each slot's loss is made while its scores are there, and kept as one row of
hidden size. Owns no notion of blocks or weights.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# Scores that exist at a time, in numbers: what fits a CPU's cache well, and what keeps a GPU busy.
_AT_A_TIME = {"cpu": 2**19, "cuda": 2**27}
# Fewer slots than this are not worth a pass over the head.
_FEWEST = 64


@dataclass(frozen=True)
class Mix:
    """What a slot's loss is: ce * cross-entropy + kl * T^2 * KL(teacher || drafter), both softened by T in the KL."""

    ce: float = 1.0
    kl: float = 0.0
    temperature: float = 1.0


@dataclass(frozen=True)
class Scores:
    """One entry a slot. `loss` alone has a gradient; `ranks` counts the tokens held more likely than the right one."""

    loss: Tensor
    ce: Tensor
    kl: Tensor
    ranks: Tensor
    top1_prob: Tensor


def head_scores(head: torch.nn.Module, hidden: Tensor, wanted: Tensor, teacher: Tensor | None, mix: Mix) -> Scores:
    """Scores of `hidden` [slots, hidden] against the tokens `wanted` [slots].

    With `teacher` [slots, hidden], the target's final states, its likeliest tokens are wanted instead.
    """
    return Scores(*_Head.apply(hidden, head, wanted, teacher, mix))  # type: ignore[no-untyped-call]


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, head: Any, wanted: Tensor, teacher: Tensor | None, mix: Mix
    ) -> tuple[Tensor, ...]:
        exact = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        columns = [hidden.new_zeros(len(hidden), dtype=exact) for _ in range(4)]
        loss, ce, kl, top1_prob = columns
        ranks = torch.zeros_like(wanted)
        wants_gradient = ctx.needs_input_grad[0]
        gradient = torch.empty_like(hidden, dtype=exact) if wants_gradient else None
        size = max(_FEWEST, _AT_A_TIME.get(hidden.device.type, 2**27) // head.weight.shape[0])
        for first in range(0, len(hidden), size):
            at = slice(first, first + size)
            logits = _logits(head, hidden[at], exact)
            taught = None if teacher is None else _logits(head, teacher[at], exact)
            right = (wanted[at] if taught is None else taught.argmax(1))[:, None]
            reached, probs = logits.gather(1, right), logits.softmax(1)
            top1_prob[at] = probs.amax(1)
            # By the likeliest token: it alone surely has a probability that a logarithm can be taken of.
            ce[at] = logits.amax(1) - top1_prob[at].log() - reached[:, 0]
            slope = None
            if taught is not None and mix.kl:
                kl[at], slope = _divergence(logits, taught, mix.temperature)
            # Counted among numbers, in their place: five times faster than among booleans.
            ranks[at] = logits.gt_(reached).sum(1).long()
            if gradient is not None:
                push = probs.scatter_add_(1, right, -torch.ones_like(reached))
                if mix.ce != 1.0:
                    push *= mix.ce
                if slope is not None:
                    push.add_(slope, alpha=mix.kl)
                gradient[at] = push.to(head.weight.dtype) @ head.weight
        loss.copy_(mix.ce * ce + mix.kl * kl)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(ce, kl, ranks, top1_prob)
        return loss, ce, kl, ranks, top1_prob

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream[0][:, None], None, None, None, None


def _logits(head: Any, hidden: Tensor, exact: torch.dtype) -> Tensor:
    with torch.autocast(hidden.device.type, enabled=False):
        logits: Tensor = head(hidden.to(head.weight.dtype)).to(exact)
    return logits


def _divergence(logits: Tensor, taught: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """T^2 KL(teacher || drafter) of each row, and its derivative by `logits`."""
    log_q, log_p = ((scores / temperature).log_softmax(1) for scores in (logits, taught))
    p = log_p.exp()
    return temperature**2 * (p * (log_p - log_q)).sum(1), temperature * (log_q.exp() - p)

"""Counts of what a drafter got right, and the figures made of them.

Everything is a sum until it is asked for: figures of a window or of an evaluation come from added counts, never from
averaged averages. The accepted length in particular is counted block by block; a product of the slots' accuracies is
another, wrong number.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

TOP = 8


def leading_runs(right: Tensor) -> Tensor:
    """How many slots from the first on are right without a gap: [..., slots] -> [...]."""
    return right.long().cumprod(-1).sum(-1)


@dataclass(frozen=True)
class Tally:
    """Sums over blocks. Lists have one entry a slot, the one behind the anchor first."""

    blocks: int
    run: int
    run_top8: int
    top1_prob: float
    slots: list[int]
    right: list[int]
    survived: list[int]

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.blocks + other.blocks,
            self.run + other.run,
            self.run_top8 + other.run_top8,
            self.top1_prob + other.top1_prob,
            [a + b for a, b in zip(self.slots, other.slots, strict=True)],
            [a + b for a, b in zip(self.right, other.right, strict=True)],
            [a + b for a, b in zip(self.survived, other.survived, strict=True)],
        )

    def scalars(self) -> dict[str, float | None]:
        """`accept_len` counts the bonus token that the target adds; `ddtree_streak8` does not."""
        slots = sum(self.slots)
        run, streak = _ratio(self.run, self.blocks), _ratio(self.run_top8, self.blocks)
        return {
            "accuracy": _ratio(sum(self.right), slots),
            "accept_len": None if run is None else 1 + run,
            "ddtree_streak8": streak,
            "draft_top1_prob": _ratio(self.top1_prob, slots),
        }

    def position_acc(self) -> list[float | None]:
        """Share of right ones among the supervised slots at each distance from the anchor."""
        return [_ratio(a, b) for a, b in zip(self.right, self.slots, strict=True)]

    def prefix_acc(self) -> list[float | None]:
        """Share of the blocks whose slots up to each distance are all right."""
        return [_ratio(count, self.blocks) for count in self.survived]


def tally(supervised: Tensor, ranks: Tensor, top1_prob: Tensor) -> Tally:
    """Counts of blocks [blocks, slots], the anchor's slot left out.

    `ranks` says how many tokens the drafter held more likely than the right one; both it and `top1_prob` count only
    where `supervised`. A run ends at a slot that is not supervised. Blocks without any supervised slot are no blocks.
    """
    held = supervised.any(-1)
    supervised, ranks, top1_prob = supervised[held], ranks[held], top1_prob[held]
    right = supervised & (ranks == 0)
    runs = leading_runs(right)
    reach = torch.arange(1, supervised.shape[-1] + 1, device=runs.device)
    return Tally(
        blocks=len(runs),
        run=int(runs.sum()),
        run_top8=int(leading_runs(supervised & (ranks < TOP)).sum()),
        top1_prob=float(top1_prob[supervised].sum()),
        slots=supervised.sum(0).tolist(),
        right=right.sum(0).tolist(),
        survived=(runs[:, None] >= reach).sum(0).tolist(),
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None

"""Counts of what a drafter got right, and the figures made of them.

Everything is a sum until it is asked for: figures of a window or of an evaluation come from added counts, never from
averaged averages. The accepted length in particular is counted block by block; a product of the slots' accuracies is
another, wrong number.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

TOP = 8
# The sums that stand before the three lists, in order.
_SCALARS = ("loss", "weight", "ce", "kl", "blocks", "run", "run_top8", "top1_prob")


def leading_runs(right: Tensor) -> Tensor:
    """How many slots from the first on are right without a gap: [..., slots] -> [...]."""
    return right.long().cumprod(-1).sum(-1)


@dataclass(frozen=True)
class Tally:
    """Sums over blocks, as one float64 row, so that micro-batches and processes add by one addition.

    It holds `_SCALARS`, then `slots`, `right` and `survived`, one entry each a slot, the one behind the anchor first.
    """

    sums: Tensor

    @classmethod
    def empty(cls, block_size: int, device: torch.device | None = None) -> "Tally":
        return cls(torch.zeros(len(_SCALARS) + 3 * (block_size - 1), dtype=torch.float64, device=device))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.sums + other.sums)

    def __getattr__(self, name: str) -> float:
        if name in _SCALARS:
            return float(self.sums[_SCALARS.index(name)])
        raise AttributeError(name)

    @property
    def slots(self) -> list[int]:
        return self._list(0)

    @property
    def right(self) -> list[int]:
        return self._list(1)

    @property
    def survived(self) -> list[int]:
        return self._list(2)

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

    def losses(self) -> dict[str, float | None]:
        """`loss` as it is optimised, and its parts in nats, every supervised slot weighing the same."""
        slots = sum(self.slots)
        return {
            "loss": _ratio(self.loss, self.weight),
            "loss_ce": _ratio(self.ce, slots),
            "loss_kl": _ratio(self.kl, slots),
        }

    def position_acc(self) -> list[float | None]:
        """Share of right ones among the supervised slots at each distance from the anchor."""
        return [_ratio(a, b) for a, b in zip(self.right, self.slots, strict=True)]

    def prefix_acc(self) -> list[float | None]:
        """Share of the blocks whose slots up to each distance are all right."""
        return [_ratio(count, self.blocks) for count in self.survived]

    def _list(self, number: int) -> list[int]:
        lists = self.sums[len(_SCALARS) :].view(3, -1)
        return [int(count) for count in lists[number].tolist()]


def tally(supervised: Tensor, ranks: Tensor, top1_prob: Tensor, losses: Tensor | None = None) -> Tally:
    """Counts of blocks [blocks, slots], the anchor's slot left out.

    `ranks` says how many tokens the drafter held more likely than the right one; both it and `top1_prob` count only
    where `supervised`. A run ends at a slot that is not supervised. Blocks without any supervised slot are no blocks.
    `losses` are the first four sums.
    """
    right = supervised & (ranks == 0)
    runs = leading_runs(right)
    reach = torch.arange(1, supervised.shape[-1] + 1, device=runs.device)
    counts = [
        supervised.any(-1).sum(),
        runs.sum(),
        leading_runs(supervised & (ranks < TOP)).sum(),
        # A product would let an unsupervised NaN through.
        top1_prob.masked_fill(~supervised, 0).sum(),
    ]
    lists = [supervised.sum(0), right.sum(0), (runs[:, None] >= reach).sum(0)]
    first = torch.zeros(4, dtype=torch.float64, device=runs.device) if losses is None else losses
    return Tally(torch.cat([first, torch.stack([c.double() for c in counts]), *[row.double() for row in lists]]))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None

"""The attention of training without its mask: what a block cannot see is not computed. `attend_dense` is its oracle.

A dense mask spans context and all blocks, though a slot sees one block only, and SDPA's backward over it is the dearest
part of a step on a CPU. Here the scores of a slot are those over the context and those over its own block, side by side
under one softmax; and blocks come in groups of rising anchors, each with the stretch of context that its last one sees.
Scores exist as a whole, blocks x (context + block): right for a CPU, too much for the batches of a GPU.

The gradient is written out below: scores are the largest tensors of a step, and autograd would copy them a dozen times.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.blocks import Anchors, window_inside
from trainer.model import Attend, KeysValues, Window

# More groups compute less and call more: 4 to 8 were within 5 % of each other, for 32 to 64 blocks.
_GROUPS = 6


@dataclass(frozen=True)
class _Group:
    """Some blocks, and the `places` of the context that they see.

    `bias`, added to their scores, hides what single ones do not see of that, from the column `hides` on:
    [sequences, 1, blocks, 1, 1 or slots, columns].
    """

    blocks: slice
    places: slice
    hides: int
    bias: Tensor

    @property
    def stretch(self) -> int:
        return int(self.places.stop - self.places.start)

    def rows(self, x: Tensor) -> Tensor:
        """The group's rows of all blocks' `x`, one block behind the other."""
        return x[:, self.blocks].flatten(1, 2)

    def far(self, x: Tensor) -> Tensor:
        """The part over the context of `x`, which is the group's."""
        return x.flatten(1, 2)[..., : self.stretch]


@dataclass(frozen=True)
class _Plan:
    """`unseen`, added to the scores of slots among each other, hides what a window does not let them see."""

    block_size: int
    groups: list[_Group]
    unseen: Tensor | None


def attend_structured(anchors: Anchors, block_size: int, window: Window = None) -> Attend:
    """The same as `attend_dense(visible(anchors, ...))`; anchors come in rising order, as `blocks` makes them."""
    unseen = None if window is None else _hiding(~window_inside(block_size, window, anchors.positions.device))
    plan = _Plan(block_size, _groups(anchors, block_size, window), unseen)

    def attend(queries: Tensor, context: KeysValues, block: KeysValues) -> Tensor:
        with torch.autocast(queries.device.type, enabled=False):
            held = (part.to(queries.dtype) for part in (*context, *block))
            out: Tensor = _Structured.apply(queries, *held, plan)  # type: ignore[no-untyped-call]
        return out

    return attend


class _Structured(torch.autograd.Function):
    """Inside, tensors are [sequences * kv_heads, blocks, rows, ...]: the query heads that share keys are rows of one
    block. What is *far* is the context, what is *near* the own block."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, own_keys: Tensor, own_values: Tensor, plan: _Plan
    ) -> Tensor:
        kv_heads, size = keys.shape[1], plan.block_size
        asked = _by_block(queries / math.sqrt(queries.shape[-1]), kv_heads, size)
        far_keys, far_values = keys.flatten(0, 1), values.flatten(0, 1)
        near_keys, near_values = _by_block(own_keys, kv_heads, size), _by_block(own_values, kv_heads, size)
        near = asked @ near_keys.mT
        if plan.unseen is not None:
            near.view(*near.shape[:2], -1, size, size).add_(plan.unseen)
        read, shares = torch.empty_like(asked), []
        for group in plan.groups:
            scores = _side_by_side(asked, far_keys, near, group)
            # Heads that share keys see the same.
            apart = scores.view(len(queries), kv_heads, scores.shape[1], -1, size, scores.shape[-1])
            apart[..., group.hides : group.stretch].add_(group.bias)
            share = scores.softmax(-1)
            near[:, group.blocks] = share[..., group.stretch :]
            group.rows(read).copy_(group.far(share) @ far_values[:, group.places])
            shares.append(share)
        _each(read).baddbmm_(_each(near), _each(near_values))
        ctx.save_for_backward(asked, far_keys, far_values, near_keys, near_values, near, *shares)
        ctx.plan, ctx.shape = plan, queries.shape
        return _by_head(read, queries.shape)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        asked, far_keys, far_values, near_keys, near_values, near_share, *shares = ctx.saved_tensors
        sequences, _, _, width = ctx.shape
        kv_heads = len(asked) // sequences
        pushed = _by_block(upstream[0], kv_heads, ctx.plan.block_size)
        near = pushed @ near_values.mT
        to_asked = torch.empty_like(asked)
        to_far_keys, to_far_values = torch.zeros_like(far_keys), torch.zeros_like(far_values)
        for group, share in zip(ctx.plan.groups, shares, strict=True):
            slope = _side_by_side(pushed, far_values, near, group)
            slope = torch._softmax_backward_data(slope, share, -1, share.dtype)
            near[:, group.blocks] = slope[..., group.stretch :]
            group.rows(to_asked).copy_(group.far(slope) @ far_keys[:, group.places])
            to_far_keys[:, group.places] += group.far(slope).mT @ group.rows(asked)
            to_far_values[:, group.places] += group.far(share).mT @ group.rows(pushed)
        _each(to_asked).baddbmm_(_each(near), _each(near_keys))
        to_asked /= math.sqrt(width)
        each = (to_far_keys, to_far_values, near.mT @ asked, near_share.mT @ pushed)
        back = (x.view(sequences, kv_heads, -1, width) for x in each)
        return _by_head(to_asked, ctx.shape), *back, None


def _side_by_side(rows: Tensor, far: Tensor, near: Tensor, group: _Group) -> Tensor:
    """Of the group's `rows`: their products with the context, and beside them what is known of their own blocks."""
    of_group = near[:, group.blocks]
    both = near.new_empty(*of_group.shape[:-1], group.stretch + near.shape[-1])
    group.far(both).copy_(group.rows(rows) @ far[:, group.places].mT)
    both[..., group.stretch :] = of_group
    return both


def _each(x: Tensor) -> Tensor:
    """Every block a matrix of its own."""
    return x.flatten(0, 1)


def _by_block(x: Tensor, kv_heads: int, block_size: int) -> Tensor:
    """[sequences, heads, blocks * slots, width] -> [sequences * kv_heads, blocks, heads / kv_heads * slots, width]."""
    sequences, heads, _, width = x.shape
    apart = x.reshape(sequences, kv_heads, heads // kv_heads, -1, block_size, width).transpose(2, 3)
    return apart.reshape(sequences * kv_heads, apart.shape[2], -1, width)


def _by_head(x: Tensor, shape: torch.Size) -> Tensor:
    """Back from `_by_block`."""
    sequences, heads, _, width = shape
    kv_heads, blocks = len(x) // sequences, x.shape[1]
    return x.view(sequences, kv_heads, blocks, heads // kv_heads, -1, width).transpose(2, 3).reshape(shape)


def _hiding(hidden: Tensor) -> Tensor:
    return torch.zeros(hidden.shape, device=hidden.device).masked_fill_(hidden, -math.inf)


def _groups(anchors: Anchors, block_size: int, window: Window) -> list[_Group]:
    num_blocks = anchors.positions.shape[1]
    size = -(-num_blocks // _GROUPS)
    groups = []
    for first in range(0, num_blocks, size):
        blocks = slice(first, min(first + size, num_blocks))
        positions, valid = anchors.positions[:, blocks], anchors.valid[:, blocks]
        # Padding blocks stand at 0 and need no context.
        reach, begin = int(positions.max()), 0
        if window is not None:
            begin = min(reach, max(0, int(positions.masked_fill(~valid, reach).min()) - window + 1))
        begins = None if anchors.begins is None else anchors.begins[:, blocks]
        if begins is not None:
            begin = min(reach, max(begin, int(begins.masked_fill(~valid, reach).min())))
        places = torch.arange(begin, reach, device=positions.device)
        ends = positions[:, None, :, None, None, None]
        # Padding blocks stand at 0, and so see nothing but themselves.
        hidden = places >= ends
        if begins is not None:
            hidden = hidden | (places < begins[:, None, :, None, None, None])
        if window is not None:
            hidden = hidden | (places <= ends + torch.arange(block_size, device=places.device)[:, None] - window)
        hides = int((~hidden.flatten(0, -2).any(0)).cumprod(0).sum())
        groups.append(_Group(blocks, slice(begin, reach), hides, _hiding(hidden[..., hides:])))
    return groups

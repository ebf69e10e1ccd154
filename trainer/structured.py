"""The attention of training without its mask: what a block cannot see is not computed. `attend_dense` is its oracle.

A dense mask spans context and all blocks, though a slot sees one block only, and SDPA's backward over it is the dearest
part of a step on a CPU. Here the scores of a slot are those over the context and those over its own block, side by side
under one softmax; and blocks come in groups of rising anchors, each with the stretch of context that its last one sees.
Scores exist as a whole, blocks x (context + block): right for a CPU, too much for the batches of a GPU.
"""

import math

import torch
from torch import Tensor

from trainer.blocks import Anchors, window_inside
from trainer.model import Attend, KeysValues, Window

# More groups compute less and call more: 4 was best, or within 3 % of it, for 32 to 64 blocks.
_GROUPS = 4


def attend_structured(anchors: Anchors, block_size: int, window: Window = None) -> Attend:
    """The same as `attend_dense(visible(anchors, ...))`; anchors come in rising order, as `blocks` makes them."""
    groups = _groups(anchors, block_size, window)
    unseen = None if window is None else ~window_inside(block_size, window, anchors.positions.device)

    def attend(queries: Tensor, context: KeysValues, block: KeysValues) -> Tensor:
        sequences, heads, _, width = queries.shape
        kv_heads = context[0].shape[1]
        sharing = heads // kv_heads
        # Query heads that share keys lie side by side, under their block: [sequences, kv_heads, blocks, slots, width].
        grouped = queries.view(sequences, kv_heads, sharing, -1, block_size, width).transpose(2, 3)
        slots = grouped.flatten(3, 4) / math.sqrt(width)
        keys, values = (part.view(sequences, kv_heads, -1, block_size, width) for part in block)
        read = []
        for first, last, begin, reach, hidden in groups:
            asked = slots[:, :, first:last]
            far = asked.flatten(2, 3) @ context[0][:, :, begin:reach].transpose(-1, -2)
            far = far.view(*asked.shape[:-1], reach - begin)
            near = asked @ keys[:, :, first:last].transpose(-1, -2)
            if unseen is not None:
                hidden = hidden.repeat(1, 1, 1, sharing, 1)
                near = near.masked_fill(unseen.repeat(sharing, 1), -math.inf)
            shares = torch.cat((far.masked_fill(hidden, -math.inf), near), dim=-1).softmax(-1)
            far, near = shares[..., : reach - begin], shares[..., reach - begin :]
            seen = far.flatten(2, 3) @ context[1][:, :, begin:reach]
            read.append(seen.view_as(asked) + near @ values[:, :, first:last])
        whole = torch.cat(read, dim=2).view(grouped.shape)
        return whole.transpose(2, 3).reshape(queries.shape)

    return attend


def _groups(anchors: Anchors, block_size: int, window: Window) -> list[tuple[int, int, int, int, Tensor]]:
    """First and last block of each group, the stretch of context it sees, and what its blocks do not see of that.

    The last is [sequences, 1, blocks, 1 or block_size, stretch].
    """
    num_blocks = anchors.positions.shape[1]
    size = -(-num_blocks // _GROUPS)
    groups = []
    for first in range(0, num_blocks, size):
        positions = anchors.positions[:, first : first + size]
        # Padding blocks stand at 0 and need no context.
        valid = anchors.valid[:, first : first + size]
        reach, begin = int(positions.max()), 0
        if window is not None:
            begin = min(reach, max(0, int(positions.masked_fill(~valid, reach).min()) - window + 1))
        begins = None if anchors.begins is None else anchors.begins[:, first : first + size]
        if begins is not None:
            begin = min(reach, max(begin, int(begins.masked_fill(~valid, reach).min())))
        places = torch.arange(begin, reach, device=positions.device)
        ends = positions[:, None, :, None, None]
        # Padding blocks stand at 0, and so see nothing but themselves.
        hidden = places >= ends
        if begins is not None:
            hidden = hidden | (places < begins[:, None, :, None, None])
        if window is not None:
            hidden = hidden | (places <= ends + torch.arange(block_size, device=places.device)[:, None] - window)
        groups.append((first, first + size, begin, reach, hidden))
    return groups

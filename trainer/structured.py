"""The attention of training without its mask: what a block cannot see is not computed. `attend_dense` is its oracle.

A dense mask spans context and all blocks, though a slot sees one block only, and SDPA's backward over it is the dearest
part of a step on a CPU. Here the scores of a slot are those over the context and those over its own block, side by side
under one softmax; and blocks come in groups of rising anchors, each with the stretch of context that its last one sees.
Scores exist as a whole, blocks x (context + block): right for a CPU, too much for the batches of a GPU.
"""

import math

import torch
from torch import Tensor

from trainer.blocks import Anchors
from trainer.model import Attend, KeysValues

# More groups compute less and call more: 4 was best, or within 3 % of it, for 32 to 64 blocks.
_GROUPS = 4


def attend_structured(anchors: Anchors, block_size: int) -> Attend:
    """The same as `attend_dense(visible(anchors, ...))`; anchors come in rising order, as `blocks` makes them."""
    groups = _groups(anchors)

    def attend(queries: Tensor, context: KeysValues, block: KeysValues) -> Tensor:
        sequences, heads, _, width = queries.shape
        kv_heads = context[0].shape[1]
        # Query heads that share keys lie side by side, under their block: [sequences, kv_heads, blocks, slots, width].
        grouped = queries.view(sequences, kv_heads, heads // kv_heads, -1, block_size, width).transpose(2, 3)
        slots = grouped.flatten(3, 4) / math.sqrt(width)
        keys, values = (part.view(sequences, kv_heads, -1, block_size, width) for part in block)
        read = []
        for first, last, reach, hidden in groups:
            asked = slots[:, :, first:last]
            far = asked.flatten(2, 3) @ context[0][:, :, :reach].transpose(-1, -2)
            far = far.view(*asked.shape[:-1], reach).masked_fill(hidden, -math.inf)
            near = asked @ keys[:, :, first:last].transpose(-1, -2)
            shares = torch.cat((far, near), dim=-1).softmax(-1)
            far, near = shares[..., :reach], shares[..., reach:]
            seen = far.flatten(2, 3) @ context[1][:, :, :reach]
            read.append(seen.view_as(asked) + near @ values[:, :, first:last])
        whole = torch.cat(read, dim=2).view(grouped.shape)
        return whole.transpose(2, 3).reshape(queries.shape)

    return attend


def _groups(anchors: Anchors) -> list[tuple[int, int, int, Tensor]]:
    """First and last block of each group, how far it sees, and what its blocks do not see of that."""
    num_blocks = anchors.positions.shape[1]
    size = -(-num_blocks // _GROUPS)
    groups = []
    for first in range(0, num_blocks, size):
        positions = anchors.positions[:, first : first + size]
        reach = int(positions.max())
        places = torch.arange(reach, device=positions.device)
        # Padding blocks stand at 0, and so see nothing but themselves.
        hidden = places >= positions[:, None, :, None, None]
        groups.append((first, first + size, reach, hidden))
    return groups

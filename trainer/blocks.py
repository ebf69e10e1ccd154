"""Blocks of a batch (the paper's 4.2): where they begin, what they hold, what is asked of them, and what they may see.

A block is an anchor, which is known, and block_size - 1 slots behind it, which are drafted in one pass. Slot k stands
at position anchor + k and predicts the token there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.batches import Batch


@dataclass(frozen=True)
class Anchors:
    """[rows, blocks]; a row with fewer blocks than the others has padding ones, at 0 and not valid.

    `positions` are places in the row. Where it holds several sequences, `begins` says where that of each block begins.
    """

    positions: Tensor
    valid: Tensor
    begins: Tensor | None = None


@dataclass(frozen=True)
class Blocks:
    """[rows, blocks, block_size] each. `labels` are meaningless where not `supervised`.

    `places` are those of the row, `positions` those of the sequence; they differ where a row holds several.
    """

    anchors: Anchors
    inputs: Tensor
    places: Tensor
    positions: Tensor
    labels: Tensor
    supervised: Tensor

    @property
    def tokens(self) -> Tensor:
        """The tokens that `inputs` are made of, [rows, blocks + 1]: the anchors', and the mask that stands in all slots
        behind them."""
        return torch.cat((self.inputs[..., 0], self.inputs[:, :1, -1]), dim=1)

    def spread(self, of_tokens: Tensor) -> Tensor:
        """What is known of `tokens` [rows, blocks + 1, ...], slot by slot: [rows, blocks * block_size, ...]."""
        anchors, mask = of_tokens[:, :-1, None], of_tokens[:, -1:, None]
        size = self.inputs.shape[-1]
        masks = mask.expand(-1, anchors.shape[1], size - 1, *mask.shape[3:])
        return torch.cat((anchors, masks), dim=2).flatten(1, 2)

    def keep(self, of_slots: Tensor) -> Tensor:
        """Of what is known slot by slot, that of the supervised ones: [supervised, ...]."""
        return of_slots.flatten(0, 1)[self.supervised.flatten()]


def eligible(response: Tensor, begins: Tensor | None = None) -> Tensor:
    """Where a block may begin: its first token and the one after it belong to a response. [rows, tokens]."""
    following = torch.zeros_like(response)
    following[:, :-1] = response[:, 1:]
    if begins is not None:
        following[:, :-1] &= begins[:, 1:] == begins[:, :-1]
    return response & following


def draw_anchors(response: Tensor, count: int, generator: torch.Generator, begins: Tensor | None = None) -> Anchors:
    """Up to `count` eligible positions of every sequence, without replacement, in rising order."""
    allowed = eligible(response, begins)
    lottery = torch.rand(response.shape, generator=generator).to(response.device)
    lottery = lottery.masked_fill(~allowed, -1.0)
    if begins is None:
        return _chosen(lottery, allowed, count)
    # Sequence by sequence, the luckiest first: a token's rank is how far behind the first of its sequence it comes.
    order = (begins - 0.5 * lottery.double()).argsort(1)
    rank = torch.arange(response.shape[1], device=begins.device) - begins.gather(1, order)
    drawn = allowed & torch.zeros_like(allowed).scatter(1, order, rank < count)
    anchors = _chosen(drawn.float(), drawn, response.shape[1])
    return Anchors(anchors.positions, anchors.valid, begins.gather(1, anchors.positions))


def every_anchor(response: Tensor, stride: int) -> Anchors:
    """Every `stride`-th eligible position of every sequence: the same ones whenever asked."""
    allowed = eligible(response)
    chosen = allowed & ((allowed.cumsum(1) - 1) % stride == 0)
    return _chosen(chosen.float(), chosen, response.shape[1])


def _chosen(scores: Tensor, allowed: Tensor, count: int) -> Anchors:
    """The `count` best scored positions, as far as they are allowed, in rising order."""
    width = min(count, max(1, int(allowed.sum(1).max())))
    best = scores.topk(width, dim=1).indices
    beyond = scores.shape[1]
    positions = best.masked_fill(~allowed.gather(1, best), beyond).sort(dim=1).values
    valid = positions < beyond
    return Anchors(positions.masked_fill(~valid, 0), valid)


def cut(batch: Batch, anchors: Anchors, block_size: int, mask_token_id: int) -> Blocks:
    """The blocks at `anchors`. A slot is supervised if the token it predicts exists and belongs to a response."""
    tokens = batch.tokens
    slots = torch.arange(block_size, device=tokens.device)
    places = positions = anchors.positions[:, :, None] + slots
    length = tokens.shape[1]
    # Blocks at the end of a row reach beyond it: those slots read its last token, and count for nothing.
    inside = places.clamp(max=length - 1).flatten(1)
    labels = tokens.gather(1, inside).view_as(places)
    supervised = batch.response.gather(1, inside).view_as(places) & (places < length)
    supervised &= anchors.valid[:, :, None] & (slots > 0)
    if batch.begins is not None and anchors.begins is not None:
        # Nor do they reach into the next sequence.
        begins = anchors.begins[:, :, None]
        supervised &= batch.begins.gather(1, inside).view_as(places) == begins
        positions = places - begins
    inputs = torch.where(slots > 0, torch.full_like(labels, mask_token_id), labels)
    return Blocks(anchors, inputs, places, positions, labels, supervised)


def visible(anchors: Anchors, num_context: int, block_size: int, window: int | None = None) -> Tensor:
    """Dense attention mask [sequences, 1, blocks * block_size, num_context + blocks * block_size].

    The paper's figure 4: a slot sees the features of its sequence strictly before its anchor, and the slots of its own
    block. The feature at the anchor was made from the token that slot 1... would be asked to guess from: seeing it
    looks like success and dies at inference.
    With a `window`, a slot sees the last `window` positions up to its own, and none behind it.
    Padding blocks see themselves only, which keeps their softmax finite.
    """
    sequences, blocks = anchors.positions.shape
    device = anchors.positions.device
    slots = torch.arange(block_size, device=device)
    places = torch.arange(num_context, device=device)
    begins = anchors.positions[:, :, None, None]
    before = (places < begins) & anchors.valid[:, :, None, None]
    if anchors.begins is not None:
        before = before & (places >= anchors.begins[:, :, None, None])
    before = before.expand(-1, -1, block_size, -1)
    inside = torch.ones(block_size, block_size, dtype=torch.bool, device=device)
    if window is not None:
        before = before & (places > begins + slots[:, None] - window)
        inside = window_inside(block_size, window, device)
    own = torch.eye(blocks, dtype=torch.bool, device=device)
    own = (own[:, None, :, None] & inside[None, :, None, :]).flatten(2).expand(sequences, -1, -1, -1)
    return torch.cat((before, own), dim=3).flatten(1, 2).unsqueeze(1)


def window_inside(block_size: int, window: int, device: torch.device) -> Tensor:
    """What the slots of a block see of it in a layer with a window: [queries, keys]."""
    slots = torch.arange(block_size, device=device)
    distance = slots[:, None] - slots
    return (distance >= 0) & (distance < window)

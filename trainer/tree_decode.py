"""Greedy decoding by the target with trees of drafts: a pass over a tree, of which one path is kept.

The nodes of a tree lie side by side in the target's cache, behind the text; the path that was right is then moved to
where a text of its length would lie.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from trainer.ddtree import Tree, build
from trainer.decode import Decoded, Rows, begin, go_on, left
from trainer.model import Drafter
from trainer.target import Target


@torch.no_grad()
def tree_speculative(
    target: Target,
    drafter: Drafter,
    prompts: Sequence[list[int]],
    budgets: Sequence[int],
    block_size: int,
    num_nodes: int,
    check_stop: Callable[[], None] = go_on,
) -> list[Decoded]:
    """The continuation that `greedy` writes, by trees of `num_nodes` below the root.

    `accepted` counts a round's tokens, the bonus included: 1 to block_size.
    """
    rows, drafts, token, starts = begin(target, drafter, prompts, budgets, block_size)
    going = rows.take(token[:, None].tolist())
    while going:
        check_stop()
        token, starts = left(rows, drafts, token, starts)
        scores = drafts.scores(token, starts).float().log_softmax(-1).cpu()
        trees = [build(row, num_nodes) for row in scores]
        choices, taps = _check(target, rows, trees, token, starts)
        paths = [tree.accepted(said) for tree, said in zip(trees, choices, strict=True)]
        new = [
            [tree.tokens[node - 1] for node in path[1:]] + [said[path[-1]]]
            for tree, path, said in zip(trees, paths, choices, strict=True)
        ]
        # Shorter paths are filled up with places that are written over before they are seen.
        longest = max(map(len, paths))
        steps = torch.arange(longest, device=starts.device)
        nodes = torch.tensor([path + list(range(len(path), longest)) for path in paths], device=starts.device)
        rows.cache.move(starts[:, None] + nodes, starts[:, None] + steps)
        drafts.take(taps.gather(1, nodes[:, :, None].expand(-1, -1, taps.shape[2])), starts)
        token = torch.tensor([tokens[-1] for tokens in new], device=starts.device)
        starts = starts + torch.tensor([len(path) for path in paths], device=starts.device)
        going = rows.take(new, count=True)
    return rows.decoded


def _check(
    target: Target, rows: Rows, trees: list[Tree], token: Tensor, starts: Tensor
) -> tuple[list[list[int]], Tensor]:
    """What the target says behind every node of every row's tree, and its features there."""
    device = token.device
    size = 1 + max(len(tree.tokens) for tree in trees)
    tokens = token[:, None].repeat(1, size)
    depths = torch.zeros(len(trees), size, dtype=torch.long, device=device)
    # Rows whose tree is smaller are filled up with nodes that see themselves.
    inside = torch.eye(size, dtype=torch.bool, device=device).repeat(len(trees), 1, 1)
    for row, tree in enumerate(trees):
        count = 1 + len(tree.tokens)
        tokens[row, 1:count] = torch.tensor(tree.tokens, device=device)
        depths[row, 1:count] = torch.tensor(tree.depths, device=device)
        inside[row, :count, :count] = tree.visible().to(device)
    places = starts[:, None] + torch.arange(size, device=device)
    rows.cache.seek(places)
    keys = torch.arange(rows.cache.get_seq_length(), device=device)
    visible = (keys < starts[:, None, None]).repeat(1, size, 1)
    visible.scatter_(2, places[:, None, :].expand(-1, size, -1), inside)
    hidden, taps = target.run_at(tokens, starts[:, None] + depths, rows.cache, visible[:, None], tap=True)
    assert taps is not None
    return target.head(hidden).argmax(-1).tolist(), taps

"""DDTree (arXiv:2604.12989): a tree of drafts out of one pass of the drafter, checked in one pass of the target.

A node is a path of ranks, one a slot; its score is the sum of the slots' log-probabilities, each slot on its own. The
likeliest nodes are taken until the budget is spent. A larger tree accepts no less from the same pass, but a tree is not
always better than the chain of likeliest tokens: a drafter that is unsure spends the budget on siblings.
"""

import heapq
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tree:
    """Nodes in the order in which they were taken, parents before children; the root, node 0, is the known token.

    `tokens`, `depths` and `parents` have one entry a node below the root: node i + 1. The root's own depth is 0.
    """

    tokens: list[int]
    depths: list[int]
    parents: list[int]

    def accepted(self, choices: list[int]) -> list[int]:
        """Nodes from the root on that the target agrees with; `choices` is what it says behind each node."""
        edges = zip(self.parents, self.tokens, strict=True)
        children = {edge: node for node, edge in enumerate(edges, 1)}
        path = [0]
        while (child := children.get((path[-1], choices[path[-1]]))) is not None:
            path.append(child)
        return path

    def visible(self) -> Tensor:
        """What each node sees of the tree: itself and its ancestors, [nodes, nodes], the root's row first."""
        size = len(self.tokens) + 1
        seen = torch.eye(size, dtype=torch.bool)
        for node, parent in enumerate(self.parents, 1):
            seen[node] |= seen[parent]
        return seen


def build(log_probs: Tensor, budget: int) -> Tree:
    """The `budget` likeliest nodes below the root, of log-probabilities [slots, vocabulary]; equals by rising ranks."""
    slots, vocabulary = log_probs.shape
    width = min(budget, vocabulary)
    top = log_probs.topk(width, dim=1)
    scores, tokens = top.values.double().tolist(), top.indices.tolist()
    tree = Tree([], [], [])
    # (minus the score, ranks, the parent's node, the parent's score)
    heap: list[tuple[float, tuple[int, ...], int, float]] = [(-scores[0][0], (0,), 0, 0.0)]
    while heap and len(tree.tokens) < budget:
        cost, ranks, parent, above = heapq.heappop(heap)
        depth, rank = len(ranks), ranks[-1]
        tree.tokens.append(tokens[depth - 1][rank])
        tree.depths.append(depth)
        tree.parents.append(parent)
        if rank + 1 < width:
            sibling = above + scores[depth - 1][rank + 1]
            heapq.heappush(heap, (-sibling, (*ranks[:-1], rank + 1), parent, above))
        if depth < slots:
            heapq.heappush(heap, (cost - scores[depth][0], (*ranks, 0), len(tree.tokens), -cost))
    return tree

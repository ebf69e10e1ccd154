"""What a drafter is worth on held-out prompts: by decoding with it, and slot by slot on what the target wrote.

Decoding is the truth; the teacher-forced figures say why. Nothing here is random, and nothing is trained.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from trainer.batches import collate
from trainer.blocks import Anchors, eligible, every_anchor
from trainer.data import Sample
from trainer.decode import Decoded, lookup, speculative
from trainer.head import Mix
from trainer.metrics import Tally
from trainer.step import Objective
from trainer.tree_decode import tree_speculative

# Rows of a teacher-forced batch: small, because every stride-th position of each is a block.
_FORCED_BATCH = 8
# Nodes of a tree below its root.
_TREES = (8, 16, 32, 64)
# Blocks at a time where every position is one.
_WALK_BLOCKS = 256


@dataclass(frozen=True)
class HeldOut:
    """A prompt, what the target's plain greedy decoding writes after it, and a few tokens beyond."""

    prompt: list[int]
    response: list[int]
    beyond: list[int]


def evaluate(
    objective: Objective,
    held_out: Sequence[HeldOut],
    stride: int,
    few: int | None = None,
    *,
    trees: bool = False,
) -> tuple[float, dict[str, Any]]:
    """Tau on the first `few` prompts, which every evaluation has, and the fields of an `eval` record.

    With `trees`, these prompts are decoded by DDTree too.
    """
    began = time.monotonic()
    size = objective.block_size
    prompts = [row.prompt for row in held_out]
    budgets = [len(row.response) for row in held_out]
    decoded = speculative(objective.target, objective.drafter, prompts, budgets, size)
    copied = [lookup(r.prompt, r.response + r.beyond, len(r.response), size) for r in held_out]
    counts = teacher_forced(objective, held_out, stride)
    tau, forced = macro_tau([row.accepted for row in decoded]), counts.scalars()["accept_len"]
    rounds = [row.accepted for row in decoded]
    prefix_acc = counts.prefix_acc()
    fields = {
        "name": "heldout",
        "n_samples": len(held_out),
        "tau_linear_macro": tau,
        "tau_linear_micro": micro_tau(rounds),
        "lookup_tau_macro": macro_tau(copied),
        "lossless": lossless_share(decoded, held_out),
        **(tree_taus(objective, held_out[:few]) if trees else {}),
        "walk_accept_len": micro_tau(walks(objective, held_out)),
        "tau_gap": None if tau is None or forced is None else tau - forced,
        "eval_loss": counts.losses()["loss"],
        **counts.scalars(),
        "full_block_rate": prefix_acc[-1],
        "accept_hist": histogram(rounds, size),
        "position_acc": counts.position_acc(),
        "prefix_acc": prefix_acc,
        "seconds": time.monotonic() - began,
    }
    # A response of one token has no round.
    return macro_tau(rounds[:few]) or 1.0, fields


def tree_taus(objective: Objective, held_out: Sequence[HeldOut]) -> dict[str, Any]:
    """Tokens a round of DDTree, macro, for each size of tree."""
    prompts, budgets = [row.prompt for row in held_out], [len(row.response) for row in held_out]
    taus = {}
    for nodes in _TREES:
        size = objective.block_size
        decoded = tree_speculative(objective.target, objective.drafter, prompts, budgets, size, nodes)
        taus[f"ddtree_tau_b{nodes}"] = macro_tau([row.accepted for row in decoded])
    return taus


@torch.no_grad()
def teacher_forced(objective: Objective, held_out: Sequence[HeldOut], stride: int) -> Tally:
    """Counts over every stride-th position of the target's own responses."""
    samples = sorted((Sample(r.prompt + r.response, len(r.prompt)) for r in held_out), key=lambda s: len(s.tokens))
    # Against what the target wrote, whatever the drafter is trained on.
    judge = replace(objective, from_final=False, scoring=replace(objective.scoring, mix=Mix()))
    total = Tally.empty(objective.block_size, objective.target.device)
    for i in range(0, len(samples), _FORCED_BATCH):
        batch = collate(samples[i : i + _FORCED_BATCH], objective.target.device)
        if eligible(batch.response).any():
            features, _ = judge.features(batch)
            total += judge.loss(batch, features, every_anchor(batch.response, stride))[1]
    return total


@torch.no_grad()
def walks(objective: Objective, held_out: Sequence[HeldOut]) -> list[list[int]]:
    """What decoding would accept, round by round, told from the target's own responses: the block at the first token,
    then the one behind what that gets right, and so on. Another number than decoding gives is a fault of one of them.
    """
    judge = replace(objective, from_final=False, scoring=replace(objective.scoring, mix=Mix()))
    return [_walk(judge, row) if len(row.response) > 1 else [] for row in held_out]


def _walk(judge: Objective, row: HeldOut) -> list[int]:
    text, start = row.prompt + row.response + row.beyond, len(row.prompt)
    batch = collate([Sample(text, start)], judge.target.device)
    features, _ = judge.features(batch)
    runs: list[int] = []
    places = torch.arange(start, start + len(row.response) - 1, device=judge.target.device)
    for some in torch.split(places, _WALK_BLOCKS):
        anchors = Anchors(some[None], torch.ones_like(some[None], dtype=torch.bool))
        runs += judge.runs(batch, features, anchors)[0].tolist()
    rounds, at = [], 0
    while at < len(runs):
        rounds.append(runs[at] + 1)
        at += runs[at] + 1
    return rounds


def macro_tau(rounds: Sequence[Sequence[int]]) -> float | None:
    """Tokens a round: the mean over responses of each response's mean."""
    means = [sum(row) / len(row) for row in rounds if row]
    return sum(means) / len(means) if means else None


def micro_tau(rounds: Sequence[Sequence[int]]) -> float | None:
    """Tokens a round: the mean over all rounds."""
    pooled = [count for row in rounds for count in row]
    return sum(pooled) / len(pooled) if pooled else None


def histogram(rounds: Sequence[Sequence[int]], block_size: int) -> list[int]:
    """How many rounds gave 0, 1 ... block_size tokens; none gives 0."""
    counts = [0] * (block_size + 1)
    for row in rounds:
        for count in row:
            counts[count] += 1
    return counts


def lossless_share(decoded: Sequence[Decoded], held_out: Sequence[HeldOut]) -> float:
    """Share of the responses that are, token for token, what plain greedy decoding writes.

    In float32 that is all of them. In bfloat16 two tokens may be a tie, which a pass over one token and a pass over a
    block can break differently.
    """
    same = [d.tokens[: len(r.response)] == r.response for d, r in zip(decoded, held_out, strict=True)]
    return sum(same) / len(same)

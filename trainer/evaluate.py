"""What a drafter is worth on held-out prompts: by decoding with it, and slot by slot on what the target wrote.

Decoding is the truth; the teacher-forced figures say why. Nothing here is random, and nothing is trained.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from trainer.attention import Attention
from trainer.batches import Batch, collate
from trainer.blocks import Anchors, eligible, every_anchor
from trainer.data import answered
from trainer.decode import Decoded, go_on, lookup, speculative
from trainer.loss import Scoring
from trainer.metrics import Tally
from trainer.model import Drafter
from trainer.step import Objective
from trainer.target import Features, Target
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
    objectives: Sequence[Objective],
    held_out: Sequence[HeldOut],
    stride: int,
    few: int | None = None,
    *,
    trees: bool = False,
    at_a_time: int = 256,
    check_stop: Callable[[], None] = go_on,
) -> list[tuple[float, dict[str, Any]]]:
    """For each drafter: tau on the first `few` prompts, which every evaluation has, and the fields of an `eval` record.

    All are asked about the same prompts and the same hidden states. With `trees`, the first `few` are decoded by DDTree
    too. `at_a_time` prompts are decoded together. `check_stop`, which may raise, is called every few passes.
    """
    began = time.monotonic()
    forced = teacher_forced(objectives, held_out, stride, check_stop)
    walked = walks(objectives, held_out, check_stop)
    shared = (time.monotonic() - began) / len(objectives)
    told = []
    for objective, counts, walk in zip(objectives, forced, walked, strict=True):
        began = time.monotonic() - shared
        decoded = [
            row
            for some in _chunks(held_out, at_a_time)
            for row in speculative(*_asked(objective, some), objective.block_size, check_stop)
        ]
        in_trees = tree_taus(objective, held_out[:few], at_a_time, check_stop) if trees else {}
        fields = _fields(objective, held_out, decoded, counts, walk) | in_trees
        # A response of one token has no round.
        tau = macro_tau([row.accepted for row in decoded[:few]]) or 1.0
        told.append((tau, {**fields, "seconds": time.monotonic() - began}))
    return told


def _fields(
    objective: Objective, held_out: Sequence[HeldOut], decoded: list[Decoded], counts: Tally, walk: list[list[int]]
) -> dict[str, Any]:
    size = objective.block_size
    copied = [lookup(r.prompt, r.response + r.beyond, len(r.response), size) for r in held_out]
    rounds = [row.accepted for row in decoded]
    tau, forced = macro_tau(rounds), counts.scalars()["accept_len"]
    prefix_acc = counts.prefix_acc()
    return {
        "name": "heldout",
        "n_samples": len(held_out),
        "tau_linear_macro": tau,
        "tau_linear_micro": micro_tau(rounds),
        "lookup_tau_macro": macro_tau(copied),
        "lossless": lossless_share(decoded, held_out),
        "walk_accept_len": micro_tau(walk),
        "tau_gap": None if tau is None or forced is None else tau - forced,
        "eval_loss": counts.losses()["loss"],
        **counts.scalars(),
        "full_block_rate": prefix_acc[-1],
        "accept_hist": histogram(rounds, size),
        "position_acc": counts.position_acc(),
        "prefix_acc": prefix_acc,
    }


def sentence(fields: dict[str, Any]) -> str:
    """The figures of an evaluation that a person looks at first."""
    trees = [f"{fields[key]:.2f}" for key in fields if key.startswith("ddtree_tau") and fields[key] is not None]
    figures = [
        f"{fields['tau_linear_macro'] or 1.0:.2f} tokens a pass on {fields['n_samples']} prompts",
        f"prompt lookup {fields['lookup_tau_macro'] or 1.0:.2f}",
        *([f"trees {' '.join(trees)}"] if trees else []),
        f"lossless {fields['lossless']:.0%}",
    ]
    return ", ".join(figures)


def tree_taus(
    objective: Objective, held_out: Sequence[HeldOut], at_a_time: int, check_stop: Callable[[], None]
) -> dict[str, Any]:
    """Tokens a round of DDTree, macro, for each size of tree."""
    taus = {}
    for nodes in _TREES:
        accepted: list[list[int]] = []
        for some in _chunks(held_out, at_a_time):
            decoded = tree_speculative(*_asked(objective, some), objective.block_size, nodes, check_stop)
            accepted += [row.accepted for row in decoded]
        taus[f"ddtree_tau_b{nodes}"] = macro_tau(accepted)
    return taus


def _chunks(held_out: Sequence[HeldOut], count: int) -> Iterator[Sequence[HeldOut]]:
    """All of them together would need keys and values of all at once."""
    return (held_out[i : i + count] for i in range(0, len(held_out), count))


def _asked(objective: Objective, held_out: Sequence[HeldOut]) -> tuple[Target, Drafter, list[list[int]], list[int]]:
    prompts, budgets = [row.prompt for row in held_out], [len(row.response) for row in held_out]
    return objective.target, objective.drafter, prompts, budgets


@torch.no_grad()
def teacher_forced(
    objectives: Sequence[Objective], held_out: Sequence[HeldOut], stride: int, check_stop: Callable[[], None] = go_on
) -> list[Tally]:
    """Each drafter's counts over every stride-th position of the target's own responses."""
    samples = sorted((answered(r.prompt + r.response, len(r.prompt)) for r in held_out), key=len)
    judges = _judges(objectives)
    totals = [Tally.empty(judge.block_size, judge.target.device) for judge in judges]
    for i in range(0, len(samples), _FORCED_BATCH):
        check_stop()
        batch = collate(samples[i : i + _FORCED_BATCH], judges[0].target.device)
        if eligible(batch.response).any():
            anchors = every_anchor(batch.response, stride)
            for place, (judge, features) in enumerate(_heard(judges, batch)):
                totals[place] += judge.loss(batch, features, anchors)[1]
    return totals


@torch.no_grad()
def walks(
    objectives: Sequence[Objective], held_out: Sequence[HeldOut], check_stop: Callable[[], None] = go_on
) -> list[list[list[int]]]:
    """What decoding would accept, by each drafter in each response, round by round, told from the responses alone: the
    block at the first token, then the one behind what that gets right, and so on. Another number than decoding gives is
    a fault of one of them.
    """
    judges = _judges(objectives)
    rounds: list[list[list[int]]] = [[] for _ in judges]
    for row in held_out:
        check_stop()
        if len(row.response) < 2:
            for own in rounds:
                own.append([])
            continue
        batch = collate([answered(row.prompt + row.response + row.beyond, len(row.prompt))], judges[0].target.device)
        for own, (judge, features) in zip(rounds, _heard(judges, batch), strict=True):
            own.append(_walk(judge, batch, features, len(row.prompt), len(row.response)))
    return rounds


def _walk(judge: Objective, batch: Batch, features: Features, start: int, length: int) -> list[int]:
    runs: list[int] = []
    places = torch.arange(start, start + length - 1, device=judge.target.device)
    for some in torch.split(places, _WALK_BLOCKS):
        anchors = Anchors(some[None], torch.ones_like(some[None], dtype=torch.bool))
        runs += judge.runs(batch, features, anchors)[0].tolist()
    rounds, at = [], 0
    while at < len(runs):
        rounds.append(runs[at] + 1)
        at += runs[at] + 1
    return rounds


def _judges(objectives: Sequence[Objective]) -> list[Objective]:
    """Against what the target wrote, every slot weighing the same, whatever the drafters are trained on: so a loss can
    be held against that of a run with other weights."""
    scoring = Scoring(gamma=math.inf, position_weight="uniform")
    return [replace(o, from_final=False, scoring=scoring, attention=Attention()) for o in objectives]


def _heard(judges: Sequence[Objective], batch: Batch) -> Iterable[tuple[Objective, Features]]:
    """Each with what it hears of one pass of the target."""
    target = judges[0].target
    return zip(judges, target.features_for(batch.tokens, [j.target.layer_ids for j in judges]), strict=True)


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

import pytest
import torch

from trainer.evaluate import histogram, macro_tau, micro_tau
from trainer.metrics import leading_runs, tally

from .trainer_setup import case


def tallied(right: list[list[int]], supervised: list[list[int]] | None = None, probability: float = 0.5):
    """Right slots have rank 0, the others the given rank or 9."""
    grid = torch.tensor(right)
    held = torch.ones_like(grid, dtype=torch.bool) if supervised is None else torch.tensor(supervised).bool()
    return tally(held, torch.where(grid == 1, 0, 9), torch.full(grid.shape, probability))


def test_accepted_length_is_counted_block_by_block():
    blocks, want = case("case88_accept_blocks.json"), case("case88_accept_length.expected.json")
    assert leading_runs(torch.tensor(blocks["correct"])).tolist() == want["prefix_runs"]
    parts = [tallied([blocks["correct"][i] for i in batch]) for batch in blocks["micro_batches"]]
    total = parts[0] + parts[1]
    assert total.scalars()["accept_len"] == pytest.approx(want["tau_with_bonus_token"], rel=1e-15)
    assert total.run / total.blocks == pytest.approx(want["mean_accepted_draft_tokens"], rel=1e-15)
    assert total.position_acc() == pytest.approx(want["position_accuracy"], rel=1e-15)
    assert total.prefix_acc() == pytest.approx(want["streak_at_least"], rel=1e-15)


def test_it_is_no_product_of_accuracies():
    """Runs 3, 2 | 1, 0 of 3 slots: 1.5, where products of accuracies give 1.25 or 1.21875."""
    whole = [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]]
    total = tallied([whole[0], whole[1]]) + tallied([whole[2], whole[3]])
    assert total.run / total.blocks == 1.5
    assert total.scalars()["accept_len"] == 2.5


def test_a_run_ends_where_supervision_does():
    total = tallied([[1, 1, 1, 1]], [[1, 1, 0, 1]])
    assert total.scalars() == {"accuracy": 1.0, "accept_len": 3.0, "ddtree_streak8": 2.0, "draft_top1_prob": 0.5}
    assert total.position_acc() == [1.0, 1.0, None, 1.0]


def test_blocks_without_supervision_are_no_blocks():
    total = tallied([[1, 1], [1, 1]], [[0, 0], [1, 1]])
    assert total.blocks == 1
    nothing = tallied([[1, 1]], [[0, 0]])
    assert nothing.scalars() == {"accuracy": None, "accept_len": None, "ddtree_streak8": None, "draft_top1_prob": None}
    assert nothing.prefix_acc() == [None, None]


def test_the_streak_of_eight_takes_ranks_below_eight_and_no_bonus():
    ranks = torch.tensor([[0, 7, 8, 0], [3, 3, 3, 3]])
    total = tally(torch.ones(2, 4, dtype=torch.bool), ranks, torch.zeros(2, 4))
    assert total.scalars()["ddtree_streak8"] == (2 + 4) / 2
    assert total.scalars()["accept_len"] == 1 + (1 + 0) / 2


def test_macro_and_micro_tau_are_not_the_same():
    # 300 tokens in 60 rounds and 20 in 10: the mean of means is 3.5, the pooled mean 4.571...
    want = case("case88_accept_length.expected.json")["pooled_vs_mean_of_means"]
    rounds = [[r["tokens"] // r["verify"]] * r["verify"] for r in want["requests"]]
    assert macro_tau(rounds) == want["mean_of_means"]
    assert micro_tau(rounds) == pytest.approx(want["pooled"], rel=1e-15)
    assert histogram(rounds, 5) == [0, 0, 10, 0, 0, 60]

"""DDTree: the worked example of the public builder, and what holds for every tree."""

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.ddtree import build

ROWS = [[0.46, 0.31, 0.17, 0.06], [0.58, 0.27, 0.10, 0.05], [0.71, 0.15, 0.09, 0.05]]
# Node 0 is the root; the target says what comes behind every path.
CONTINUATIONS = {
    (0, 0, 0): (4, 4, 4),
    (1, 0, 0): (2, 3, 4),
    (0, 1, 3): (2, 2, 3),
    (2, 3, 3): (1, 2, 2),
    (3, 3, 3): (1, 1, 1),
}


def example(budget):
    return build(torch.tensor(ROWS, dtype=torch.float64).log(), budget)


def accept_length(tree, continuation) -> int:
    """The target writes `continuation` whatever the path, as a teacher-forced one does."""
    choices = [(*continuation, -1)[depth] for depth in [0, *tree.depths]]
    return len(tree.accepted(choices))


def test_the_worked_example():
    four, eight = example(4), example(8)
    assert (four.tokens, four.depths, four.parents) == ([0, 1, 0, 0], [1, 1, 2, 3], [0, 0, 1, 3])
    assert (eight.tokens, eight.depths) == ([0, 1, 0, 0, 0, 2, 0, 1], [1, 1, 2, 3, 2, 1, 3, 2])
    assert eight.parents == [0, 0, 1, 3, 2, 0, 5, 1]
    rows = ["".join(map(str, row)) for row in four.visible().int().tolist()]
    assert rows == ["10000", "11000", "10100", "11010", "11011"]


@pytest.mark.parametrize(("continuation", "lengths"), CONTINUATIONS.items())
def test_the_worked_examples_accept_lengths(continuation, lengths):
    assert tuple(accept_length(example(budget), continuation) for budget in (4, 6, 8)) == lengths


@pytest.mark.parametrize(("budget", "expected"), [(1, 1.46), (2, 1.77), (4, 2.226228), (6, 2.576028), (8, 2.827886)])
def test_the_worked_examples_expected_length(budget, expected):
    tree = example(budget)
    chances = [1.0]
    for token, depth, parent in zip(tree.tokens, tree.depths, tree.parents, strict=True):
        chances.append(chances[parent] * ROWS[depth - 1][token])
    assert sum(chances) == pytest.approx(expected, abs=1e-9)


random_trees = given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 5.0]))


def random_rows(slots, vocabulary, seed, sharpness):
    rows = torch.randn(slots, vocabulary, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (sharpness * rows).log_softmax(1)


@settings(max_examples=100, deadline=None)
@random_trees
def test_it_takes_the_likeliest_of_all_paths(slots, vocabulary, seed, sharpness):
    log_probs = random_rows(slots, vocabulary, seed, sharpness)
    paths = [p for n in range(1, slots + 1) for p in itertools.product(range(vocabulary), repeat=n)]
    scores = sorted((sum(float(log_probs[d, t]) for d, t in enumerate(path)) for path in paths), reverse=True)
    for budget in (1, 3, 8, 20):
        tree = build(log_probs, budget)
        taken = [0.0]
        for token, depth, parent in zip(tree.tokens, tree.depths, tree.parents, strict=True):
            assert parent < len(taken) and depth == [0, *tree.depths][parent] + 1
            taken.append(taken[parent] + float(log_probs[depth - 1, token]))
        assert taken[1:] == pytest.approx(scores[:budget], abs=1e-9)


@settings(max_examples=100, deadline=None)
@random_trees
def test_more_nodes_accept_no_less_and_no_more_than_they_are(slots, vocabulary, seed, sharpness):
    log_probs = random_rows(slots, vocabulary, seed, sharpness)
    rng = random.Random(seed)
    continuation = [rng.randrange(vocabulary) for _ in range(slots)]
    before = 1
    for budget in range(1, 25):
        length = accept_length(build(log_probs, budget), continuation)
        assert before <= length <= budget + 1
        before = length
        # No path is right further than the leading run of tokens among the likeliest `budget`.
        held = [bool((row > row[c]).sum() < budget) for row, c in zip(log_probs, continuation, strict=True)]
        assert length - 1 <= (held.index(False) if False in held else slots)

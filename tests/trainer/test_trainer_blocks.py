import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batches import Batch
from trainer.blocks import Anchors, cut, draw_anchors, eligible, every_anchor, visible
from trainer.loss import weighted_mean

from .trainer_setup import case

MASK = 99


def anchors_at(*rows: list[int]) -> Anchors:
    return Anchors(torch.tensor(rows), torch.ones(len(rows), len(rows[0]), dtype=torch.bool))


def batch_of(tokens: torch.Tensor, response: torch.Tensor) -> Batch:
    return Batch(tokens, response, torch.full((len(tokens),), tokens.shape[1]))


def test_supervised_slots_are_those_whose_own_token_is_in_the_response():
    want = case("case85_mask_alignment.expected.json")
    length, (first, last) = want["token_positions"], want["assistant_span"]
    tokens = torch.arange(length)[None] + 10
    response = (tokens - 10 >= first) & (tokens - 10 <= last)
    blocks = cut(batch_of(tokens, response), anchors_at(want["anchors"]), want["block_size"], MASK)
    assert blocks.supervised[0, :, 1:].int().tolist() == want["supervised"]
    assert not blocks.supervised[..., 0].any()
    assert int(blocks.supervised.sum()) == want["supervised_total"]
    assert blocks.positions[0, :, 1:].tolist() == want["targets"]
    for row, slots in enumerate(want["targets"]):
        for slot, position in enumerate(slots, 1):
            if position < length:
                assert blocks.labels[0, row, slot] == position + 10
            else:
                # A position that does not exist must not wrap to the first.
                assert not blocks.supervised[0, row, slot]
                assert blocks.labels[0, row, slot] != 10
    assert blocks.inputs[0, :, 0].tolist() == [position + 10 for position in want["anchors"]]
    assert (blocks.inputs[0, :, 1:] == MASK).all()


def test_rows_without_a_target_add_nothing_to_the_mean():
    want = case("case86_mask_batches.expected.json")
    mask, losses = torch.tensor(want["mask"], dtype=torch.float64), torch.tensor(want["ce"], dtype=torch.float64)
    assert float(weighted_mean(losses, mask)) == want["loss"]
    assert int(mask.sum()) == want["supervised_tokens"]


def test_a_batch_without_any_target_has_a_loss_of_zero_and_no_nan():
    losses = torch.ones(4, requires_grad=True)
    loss = weighted_mean(losses, torch.zeros(4))
    loss.backward()
    assert loss.item() == 0.0
    assert losses.grad.tolist() == [0.0] * 4


responses = st.lists(st.lists(st.booleans(), min_size=1, max_size=30), min_size=1, max_size=5)


def padded(rows: list[list[bool]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [False] * (longest - len(row)) for row in rows])


@settings(max_examples=150, deadline=None)
@given(responses, st.integers(1, 12), st.integers(0, 10**6))
def test_anchors_are_drawn_without_replacement_where_a_block_can_begin(rows, count, seed):
    response = padded(rows)
    anchors = draw_anchors(response, count, torch.Generator().manual_seed(seed))
    for row, positions, valid in zip(rows, anchors.positions.tolist(), anchors.valid.tolist(), strict=True):
        can_begin = [i for i in range(len(row) - 1) if row[i] and row[i + 1]]
        chosen = [p for p, ok in zip(positions, valid, strict=True) if ok]
        assert len(chosen) == min(count, len(can_begin))
        assert chosen == sorted(set(chosen))
        assert set(chosen) <= set(can_begin)
        assert all(p == 0 for p, ok in zip(positions, valid, strict=True) if not ok)


@settings(max_examples=100, deadline=None)
@given(responses, st.integers(1, 5))
def test_evaluation_takes_every_nth_position(rows, stride):
    anchors = every_anchor(padded(rows), stride)
    for row, positions, valid in zip(rows, anchors.positions.tolist(), anchors.valid.tolist(), strict=True):
        can_begin = [i for i in range(len(row) - 1) if row[i] and row[i + 1]]
        assert [p for p, ok in zip(positions, valid, strict=True) if ok] == can_begin[::stride]


def test_every_eligible_position_is_drawn_sooner_or_later():
    response = torch.tensor([[False, True, True, True, True, False]])
    generator = torch.Generator().manual_seed(1)
    drawn = {int(draw_anchors(response, 1, generator).positions) for _ in range(60)}
    assert drawn == {1, 2, 3}


@settings(max_examples=60, deadline=None)
@given(responses, st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([None, 1, 3, 40]))
def test_a_slot_sees_the_context_before_its_anchor_and_its_own_block(rows, block_size, seed, window):
    response = padded(rows)
    anchors = draw_anchors(response, 4, torch.Generator().manual_seed(seed))
    num_context, num_blocks = response.shape[1], anchors.positions.shape[1]
    seen = visible(anchors, num_context, block_size, window)
    assert seen.shape == (len(rows), 1, num_blocks * block_size, num_context + num_blocks * block_size)
    rng = random.Random(seed)
    for _ in range(40):
        row, block, slot = rng.randrange(len(rows)), rng.randrange(num_blocks), rng.randrange(block_size)
        ok, anchor = bool(anchors.valid[row, block]), int(anchors.positions[row, block])
        query = seen[row, 0, block * block_size + slot].tolist()
        near = [window is None or anchor + slot - p < window for p in range(num_context)]
        assert query[:num_context] == [ok and p < anchor and near[p] for p in range(num_context)]
        behind = [slot - s for s in range(block_size)]
        inside = [window is None or 0 <= distance < window for distance in behind]
        own = [other // block_size == block for other in range(num_blocks * block_size)]
        assert query[num_context:] == [mine and inside[o % block_size] for o, mine in enumerate(own)]


@pytest.mark.parametrize("length", [1, 4, 5, 7, 40])
def test_short_and_odd_lengths_are_cut_without_a_fuss(length):
    tokens = torch.arange(length)[None]
    response = torch.ones(1, length, dtype=torch.bool)
    anchors = draw_anchors(response, 8, torch.Generator().manual_seed(0))
    blocks = cut(batch_of(tokens, response), anchors, 4, MASK)
    assert int(eligible(response).sum()) == length - 1
    assert blocks.supervised.any() == (length > 1)

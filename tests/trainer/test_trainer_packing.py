"""Several sequences in a row: none sees another, each counts its own positions, and nothing else changes."""

import random
from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batches import Batch, collate, collate_rows, packed
from trainer.blocks import Anchors, cut, draw_anchors, eligible, visible
from trainer.data import Sample, answered, spanned
from trainer.engine import parts
from trainer.head import Mix
from trainer.loss import Scoring
from trainer.model import attend_dense
from trainer.run import run
from trainer.structured import attend_structured

from .restated import restated_loss
from .test_trainer_objective import make_objective
from .test_trainer_run import signalled
from .trainer_setup import ROOT, checked, events, random_target, write_rows

CPU = torch.device("cpu")


def samples_of(*shapes: tuple[int, int]) -> list[Sample]:
    rng = torch.Generator().manual_seed(9)
    return [answered(torch.randint(0, 250, (n,), generator=rng).tolist(), start) for n, start in shapes]


# A sequence that ends in an answer before one that begins with next to no prompt: a block could reach over.
ROWS = [samples_of((9, 4), (6, 1), (5, 3)), samples_of((12, 3)), samples_of((7, 6), (10, 2))]


def packed_and_alone() -> tuple[Batch, Batch]:
    return collate_rows(ROWS, CPU), collate([sample for row in ROWS for sample in row], CPU)


SHAPES = [
    ({}, Scoring(2.5)),
    ({"sliding_layers": "all", "sliding_window": 3}, Scoring(4.0, "dpace")),
    ({"sliding_layers": [1], "sliding_window": 6}, Scoring(10.0, "streak", Mix(0.5, 0.5, 2.0))),
]


@pytest.mark.parametrize(("changes", "scoring"), SHAPES)
def test_the_loss_of_packed_rows_is_that_of_the_plain_loops(tmp_path, tiny, changes, scoring):
    """The loops run target and drafter over each sequence alone, from its position 0 on."""
    folder = random_target(tmp_path / "t", tiny.tokenizer)
    teacher = {"teacher": "final_hidden"} if scoring.mix.kl else {}
    objective = make_objective(tmp_path, scoring, target=str(folder), **teacher, **changes)
    batch, _ = packed_and_alone()
    anchors = draw_anchors(batch.response, 4, torch.Generator().manual_seed(1), batch.begins)
    features, _ = objective.features(batch)
    loss, counts = objective.loss(batch, features, anchors)
    want, num_slots, num_right = restated_loss(objective, batch, anchors)
    assert loss.item() / counts.weight == pytest.approx(want, abs=1e-6)
    assert (sum(counts.slots), sum(counts.right)) == (num_slots, num_right)


@pytest.mark.parametrize(("changes", "scoring"), SHAPES)
def test_packed_rows_teach_what_the_sequences_alone_teach(tmp_path, tiny, changes, scoring):
    """Loss and gradient, with every eligible anchor of each."""
    folder = random_target(tmp_path / "t", tiny.tokenizer)
    teacher = {"teacher": "final_hidden"} if scoring.mix.kl else {}
    objective = make_objective(tmp_path, scoring, target=str(folder), **teacher, **changes)
    gradients, losses, slots = [], [], []
    for batch in packed_and_alone():
        anchors = draw_anchors(batch.response, 99, torch.Generator().manual_seed(1), batch.begins)
        loss, counts = objective.loss(batch, objective.features(batch)[0], anchors)
        gradients.append(torch.autograd.grad(loss, list(objective.drafter.parameters())))
        losses.append(loss.item())
        slots.append((counts.slots, counts.right, counts.blocks))
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert slots[0] == slots[1]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def test_features_of_packed_rows_are_those_of_the_sequences_alone(tmp_path, random_folder):
    objective = make_objective(tmp_path, Scoring(2.5), target=str(random_folder), teacher="final_hidden")
    batch, alone = packed_and_alone()
    together, apart = objective.features(batch)[0], objective.features(alone)[0]
    at = 0
    for row, sequences in enumerate(ROWS):
        begin = 0
        for sample in sequences:
            end = begin + len(sample)
            for one, other in ((together.taps, apart.taps), (together.final, apart.final)):
                torch.testing.assert_close(one[row, begin:end], other[at, : len(sample)], rtol=1e-9, atol=1e-9)
            begin, at = end, at + 1


rows_of_lengths = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=4)


def random_rows(rows: list[list[int]], seed: int) -> Batch:
    rng = random.Random(seed)
    told = []
    for lengths in rows:
        told.append([])
        for n in lengths:
            first = rng.randint(0, n)
            told[-1].append(spanned([rng.randint(1, 250) for _ in range(n)], [(first, rng.randint(first, n))]))
    return collate_rows(told, CPU)


@settings(max_examples=80, deadline=None)
@given(rows_of_lengths, st.integers(1, 4), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([None, 1, 3]))
def test_anchors_blocks_and_what_they_see_stay_in_their_sequence(rows, count, block_size, seed, window):
    batch = random_rows(rows, seed)
    anchors = draw_anchors(batch.response, count, torch.Generator().manual_seed(seed), batch.begins)
    blocks = cut(batch, anchors, block_size, 259)
    longest = batch.tokens.shape[1]
    seen = visible(anchors, longest, block_size, window)[:, 0]
    for row, lengths in enumerate(rows):
        edges = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        of = {place: i for i, n in enumerate(lengths) for place in range(edges[i], edges[i] + n)}
        chosen = [p for p, ok in zip(anchors.positions[row].tolist(), anchors.valid[row].tolist(), strict=True) if ok]
        can_begin = torch.nonzero(eligible(batch.response, batch.begins)[row])[:, 0].tolist()
        # Up to `count` in each sequence, none twice, and only where a block can begin.
        for i in range(len(lengths)):
            mine = [p for p in chosen if of[p] == i]
            assert len(mine) == len(set(mine)) == min(count, sum(of[p] == i for p in can_begin))
        assert chosen == sorted(chosen)
        for block, anchor in enumerate(chosen):
            begin = edges[of[anchor]]
            assert blocks.positions[row, block].tolist() == [anchor - begin + k for k in range(block_size)]
            for k in range(block_size):
                place = anchor + k
                inside = place < longest and of.get(place) == of[anchor]
                wanted = inside and k > 0 and bool(batch.response[row, place])
                assert bool(blocks.supervised[row, block, k]) == wanted
                near = [window is None or place - p < window for p in range(longest)]
                context = seen[row, block * block_size + k, :longest].tolist()
                assert context == [begin <= p < anchor and near[p] for p in range(longest)]


def random_attention(rows, count, block_size, seed, *, head_dim, dtype):
    """Anchors of packed rows, how long the longest is, and random queries, context and block (keys, values)."""
    batch = random_rows(rows, seed)
    rng = torch.Generator().manual_seed(seed)
    anchors = draw_anchors(batch.response, count, rng, batch.begins)
    num_rows, num_blocks = anchors.positions.shape
    longest, size = batch.tokens.shape[1], num_blocks * block_size

    def random_heads(heads: int, n: int) -> torch.Tensor:
        return torch.randn(num_rows, heads, n, head_dim, generator=rng, dtype=dtype)

    queries = random_heads(4, size)
    context, block = ((random_heads(2, n), random_heads(2, n)) for n in (longest, size))
    return anchors, longest, (queries, context, block)


@settings(max_examples=40, deadline=None)
@given(rows_of_lengths, st.integers(1, 5), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from([None, 2, 5]))
def test_structured_attention_is_the_dense_one_on_packed_rows(rows, count, block_size, seed, window):
    anchors, longest, heads = random_attention(rows, count, block_size, seed, head_dim=4, dtype=torch.float64)
    dense = attend_dense(visible(anchors, longest, block_size, window))(*heads)
    structured = attend_structured(anchors, block_size, window)(*heads)
    torch.testing.assert_close(structured, dense, rtol=1e-12, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=80))
def test_rows_hold_every_sequence_once_and_no_two_rows_would_fit_into_one(lengths):
    rows = packed(lengths, 50)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    filled = sorted(sum(lengths[i] for i in row) for row in rows)
    assert filled[-1] <= 50
    assert len(rows) == 1 or filled[0] + filled[1] > 50


def test_what_a_packed_batch_is_made_of():
    batch, alone = packed_and_alone()
    assert parts(batch) == [6, 49, 3 * 20, sum(n - s for n, s in [(9, 4), (6, 1), (5, 3), (12, 3), (7, 6), (10, 2)]), 0]
    assert parts(alone)[:2] == parts(batch)[:2] and parts(alone)[3:] == parts(batch)[3:]
    assert [len(list(group)) for _, group in groupby(batch.begins[0].tolist())] == [9, 6, 5]
    assert batch.positions[0].tolist() == [*range(9), *range(6), *range(5)]
    # Padding stands alone.
    assert batch.begins[2].tolist() == [0] * 7 + [7] * 10 + [17] * 3
    assert collate_rows([[sample] for sample in ROWS[0]], CPU).begins is None


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 5], "response": text[i + 5 : i + 12 + i % 47]} for i in range(0, 1500, 31)]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", train)


@pytest.mark.parametrize("batching", ["bucket", "pack", "fixed"])
def test_a_run_of_each_kind_learns_and_goes_on_bit_for_bit(tmp_path, rows, batching):
    changes = {"data": {"path": str(rows)}, "batching": batching, "batch_tokens": 256, "total_steps": 12, "lr": 3e-3}
    assert run(checked(tmp_path / "whole", **changes)) == 0
    with signalled(5):
        assert run(checked(tmp_path / "cut", **changes)) == 75
    assert run(checked(tmp_path / "cut", **changes)) == 0
    told = {name: events(tmp_path / name, "train") for name in ("whole", "cut")}
    for key in ("loss", "grad_norm", "tokens", "avg_batch_size"):
        assert [r[key] for r in told["cut"]] == [r[key] for r in told["whole"]]
    assert told["whole"][-1]["loss"] < told["whole"][0]["loss"]
    padding = sum(r["padding_eff"] for r in told["whole"]) / 12
    assert padding > {"bucket": 0.85, "pack": 0.93, "fixed": 0.5}[batching]


def test_a_bad_sequence_of_a_packed_row_is_named_alone(tmp_path, tiny, rows):
    """NaN in one sequence's features spoils those behind it in its row too; only it is at fault."""
    from safetensors.torch import load_file, save_file

    folder = random_target(tmp_path / "t", tiny.tokenizer)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.embed_tokens.weight"][ord("~")] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    told = [{"prompt": "ab", "response": c * 9} for c in "cdef~ghi"]
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "k" * 60, "response": "l" * 40}, *told])
    changes = {"target": str(folder), "target_layer_ids": [1, 3], "batching": "pack", "batch_tokens": 200}
    assert run(checked(tmp_path / "run", data={"path": str(place)}, **changes, total_steps=1)) == 0
    said = [r["reason"] for r in events(tmp_path / "run", "warn") if "not finite" in r["reason"]]
    assert len(said) == 1 and said[0].endswith("not finite on data lines 6")


def test_anchors_without_begins_are_those_of_one_sequence_a_row():
    anchors = Anchors(torch.tensor([[3, 5]]), torch.ones(1, 2, dtype=torch.bool))
    begins = Anchors(anchors.positions, anchors.valid, torch.zeros(1, 2, dtype=torch.long))
    assert torch.equal(visible(anchors, 8, 2), visible(begins, 8, 2))

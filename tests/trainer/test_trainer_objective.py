"""The drafter and its loss against a restatement in plain loops: one block, one slot, one key at a time."""

import math

import pytest
import torch

from trainer.batches import Batch, collate
from trainer.blocks import Anchors, draw_anchors
from trainer.data import Sample
from trainer.loss import auto_gamma
from trainer.model import Drafter
from trainer.step import Objective, noisy
from trainer.target import Target
from trainer.zlab import draft_shape

from .trainer_setup import checked

BLOCK, GAMMA = 4, 2.5


@pytest.fixture(scope="module")
def objective(tmp_path_factory, random_folder) -> Objective:
    config = checked(tmp_path_factory.mktemp("o"), target=str(random_folder), target_layer_ids=[1, 3])
    target = Target(config)
    target.model.double()
    drafter = Drafter(draft_shape(target, 2), torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        for parameter in drafter.parameters():
            # Norms of all ones would hide a norm that is left out.
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    return Objective(target, drafter, BLOCK, GAMMA)


@pytest.fixture(scope="module")
def batch(objective) -> Batch:
    rng = torch.Generator().manual_seed(9)
    samples = [
        Sample(torch.randint(0, 250, (length,), generator=rng).tolist(), start)
        for length, start in ((19, 5), (12, 3), (7, 6), (9, 4))
    ]
    return collate(samples, objective.target.device)


@pytest.fixture(scope="module")
def anchors(batch) -> Anchors:
    chosen = draw_anchors(batch.response, 5, torch.Generator().manual_seed(2))
    # The short rows have padding blocks, the long ones blocks that reach past the end.
    assert not chosen.valid.all()
    return chosen


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean() + eps) * weight


def rope(x: torch.Tensor, position: int, theta: float) -> torch.Tensor:
    half = len(x) // 2
    out = x.clone()
    for i in range(half):
        # The target's own encoding holds its angles in float32.
        inverse = torch.tensor(1.0 / theta ** (2 * i / len(x)), dtype=torch.float32)
        angle = float(torch.tensor(float(position)) * inverse)
        out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        out[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
    return out


def restated_hidden(drafter: Drafter, taps: torch.Tensor, inputs: torch.Tensor, anchor: int) -> torch.Tensor:
    """Final hidden states of one block [BLOCK, hidden], from the features [tokens, taps * hidden] of its sequence."""
    weights, shape, theta = dict(drafter.named_parameters()), drafter.shape, 10000.0
    per_group = shape.num_heads // shape.num_kv_heads
    features = [
        norm(weights["fc.weight"] @ taps[p], weights["hidden_norm.weight"], shape.rms_norm_eps) for p in range(anchor)
    ]
    xs = list(inputs)
    for i in range(shape.num_layers):
        w = {n.removeprefix(f"layers.{i}."): p for n, p in weights.items() if n.startswith(f"layers.{i}.")}

        def head(name: str, x: torch.Tensor, h: int, w=w) -> torch.Tensor:
            width = shape.head_dim
            return (w[f"self_attn.{name}_proj.weight"] @ x)[h * width : (h + 1) * width]

        normed = [norm(x, w["input_layernorm.weight"], shape.rms_norm_eps) for x in xs]
        seen = [(f, p) for p, f in enumerate(features)] + [(x, anchor + s) for s, x in enumerate(normed)]
        after = []
        for slot, x in enumerate(normed):
            read = []
            for h in range(shape.num_heads):
                q = rope(norm(head("q", x, h), w["self_attn.q_norm.weight"], shape.rms_norm_eps), anchor + slot, theta)
                scores, values = [], []
                for source, position in seen:
                    k = norm(head("k", source, h // per_group), w["self_attn.k_norm.weight"], shape.rms_norm_eps)
                    scores.append(float(q @ rope(k, position, theta)) / math.sqrt(shape.head_dim))
                    values.append(head("v", source, h // per_group))
                top = max(scores)
                shares = [math.exp(s - top) for s in scores]
                read.append(sum(share * v for share, v in zip(shares, values, strict=True)) / sum(shares))
            after.append(xs[slot] + w["self_attn.o_proj.weight"] @ torch.cat(read))
        xs = []
        for x in after:
            y = norm(x, w["post_attention_layernorm.weight"], shape.rms_norm_eps)
            gate = w["mlp.gate_proj.weight"] @ y
            gated = gate / (1 + torch.exp(-gate)) * (w["mlp.up_proj.weight"] @ y)
            xs.append(x + w["mlp.down_proj.weight"] @ gated)
    return torch.stack([norm(x, weights["norm.weight"], shape.rms_norm_eps) for x in xs])


@torch.no_grad()
def restated_loss(objective: Objective, batch: Batch, anchors: Anchors) -> tuple[float, int, int]:
    target = objective.target
    embedding = target.model.get_input_embeddings().weight
    head = target.model.get_output_embeddings().weight
    total = weight_sum = 0.0
    num_right = num_slots = 0
    for row, length in enumerate(batch.lengths.tolist()):
        tokens = batch.tokens[row, :length]
        states = target.model(input_ids=tokens[None], output_hidden_states=True).hidden_states
        taps = torch.cat([states[i + 1][0] for i in target.layer_ids], dim=-1)
        for anchor, valid in zip(anchors.positions[row].tolist(), anchors.valid[row].tolist(), strict=True):
            if not valid:
                continue
            inputs = torch.stack([embedding[tokens[anchor]]] + [embedding[target.mask_token_id]] * (BLOCK - 1))
            hidden = restated_hidden(objective.drafter, taps, inputs, anchor)
            for k in range(1, BLOCK):
                if anchor + k >= length or not batch.response[row, anchor + k]:
                    continue
                logits = head @ hidden[k]
                label = int(tokens[anchor + k])
                weight = math.exp(-(k - 1) / GAMMA)
                total += weight * (float(torch.logsumexp(logits, 0)) - float(logits[label]))
                weight_sum += weight
                num_slots += 1
                num_right += int(logits.argmax()) == label
    return total / weight_sum, num_slots, num_right


def test_the_loss_is_that_of_the_plain_loops(objective, batch, anchors):
    taps, _ = objective.features(batch)
    loss, counts = objective.loss(batch, taps, anchors)
    want, num_slots, num_right = restated_loss(objective, batch, anchors)
    assert loss.item() == pytest.approx(want, abs=1e-6)
    assert (sum(counts.slots), sum(counts.right)) == (num_slots, num_right)
    assert counts.blocks == int(anchors.valid.sum())


def test_padding_gives_finite_gradients(objective, batch, anchors):
    objective.drafter.zero_grad()
    taps, _ = objective.features(batch)
    objective.loss(batch, taps, anchors)[0].backward()
    assert all(torch.isfinite(p.grad).all() for p in objective.drafter.parameters())


def block_states(objective: Objective, batch: Batch, taps: torch.Tensor, anchor: int) -> torch.Tensor:
    """The drafter's final states of the block of row 0 at `anchor`, as training makes them."""
    seen = []
    hook = objective.drafter.norm.register_forward_hook(lambda _module, _inputs, out: seen.append(out.detach()))
    anchors = Anchors(torch.full((len(batch.tokens), 1), anchor), torch.ones(len(batch.tokens), 1, dtype=torch.bool))
    objective.loss(batch, taps, anchors)
    hook.remove()
    return seen[0][0]


@pytest.mark.parametrize("anchor", [6, 10, 15])
def test_nothing_from_the_anchor_on_reaches_a_block_but_the_anchor_itself(objective, batch, anchor):
    changed = batch.tokens.clone()
    changed[0, anchor + 1 :] = (changed[0, anchor + 1 :] + 7) % 250
    other = Batch(changed, batch.response, batch.lengths)
    taps, _ = objective.features(batch)
    other_taps, _ = objective.features(other)
    assert not torch.equal(taps[0, anchor + 1 :], other_taps[0, anchor + 1 :])
    states = block_states(objective, batch, taps, anchor)
    assert torch.equal(states, block_states(objective, other, other_taps, anchor))
    # Not even the feature at the anchor, which is that of a token the drafter knows.
    spoiled = taps.clone()
    spoiled[:, anchor:] = 1e3
    assert torch.equal(states, block_states(objective, batch, spoiled, anchor))
    spoiled[:, anchor - 1] = 1e3
    assert not torch.equal(states, block_states(objective, batch, spoiled, anchor))


def test_noise_reaches_the_features_and_no_label(objective, batch, anchors):
    taps, _ = objective.features(batch)
    before = taps.clone()
    heard = noisy(taps, "gaussian", 0.1, torch.Generator().manual_seed(1))
    assert torch.equal(taps, before)
    assert not torch.equal(heard, taps)
    _, clean = objective.loss(batch, taps, anchors)
    _, loud = objective.loss(batch, heard, anchors)
    assert clean.slots == loud.slots
    assert objective.loss(batch, heard, anchors)[0] != objective.loss(batch, taps, anchors)[0]


@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_noise_has_the_standard_deviation_that_is_logged(kind):
    noise = noisy(torch.zeros(200_000), kind, 0.25, torch.Generator().manual_seed(3))
    assert float(noise.std()) == pytest.approx(0.25, rel=0.01)
    assert float(noise.mean()) == pytest.approx(0, abs=0.003)
    if kind == "uniform":
        assert float(noise.abs().max()) <= 0.25 * math.sqrt(3)


def test_no_noise_is_no_noise():
    taps = torch.ones(3)
    assert noisy(taps, "none", 0.5, torch.Generator()) is taps
    assert noisy(taps, "gaussian", 0.0, torch.Generator()) is taps


@pytest.mark.parametrize(("block_size", "gamma"), [(16, 7), (10, 5), (8, 4), (32, 7), (12, 5), (4, 4)])
def test_gamma_follows_the_block(block_size, gamma):
    assert auto_gamma(block_size) == gamma

"""The drafter and its loss against a restatement in plain loops, and what must never reach them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trainer.attention import Attention
from trainer.batches import Batch, collate
from trainer.blocks import Anchors, draw_anchors
from trainer.config import ConfigError
from trainer.data import answered
from trainer.head import Mix, head_scores
from trainer.loss import Scoring, auto_gamma, make_scoring
from trainer.model import Drafter
from trainer.step import Objective, noisy
from trainer.target import Features, Target
from trainer.zlab import draft_shape, windows

from .restated import restated_loss
from .trainer_setup import checked, random_target

BLOCK = 4


def make_objective(folder: Path, scoring: Scoring, **changes) -> Objective:
    config = checked(folder, **{"target_layer_ids": [1, 3], **changes})
    target = Target(config)
    target.model.double()
    drafter = Drafter(draft_shape(target, windows(config)), torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        for parameter in drafter.parameters():
            # Norms of all ones would hide a norm that is left out.
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    return Objective(target, drafter, config["block_size"], scoring, config["teacher"] == "final_hidden")


def make_batch(*shapes: tuple[int, int]) -> Batch:
    rng = torch.Generator().manual_seed(9)
    samples = [answered(torch.randint(0, 250, (n,), generator=rng).tolist(), start) for n, start in shapes]
    return collate(samples, torch.device("cpu"))


@pytest.fixture(scope="module")
def objective(tmp_path_factory, random_folder) -> Objective:
    return make_objective(tmp_path_factory.mktemp("o"), Scoring(2.5), target=str(random_folder))


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch((19, 5), (12, 3), (7, 6), (9, 4))


@pytest.fixture(scope="module")
def anchors(batch) -> Anchors:
    chosen = draw_anchors(batch.response, 5, torch.Generator().manual_seed(2))
    # The short rows have padding blocks, the long ones blocks that reach past the end.
    assert not chosen.valid.all()
    return chosen


# Heads, kv heads, width of a head, RoPE base | block, taps, fc_layers, layers that slide, window | what is optimised.
SHAPES = [
    ((4, 2, 8, 1e4), {"block_size": 4}, Scoring(2.5)),
    ((2, 2, 6, 5e5), {"block_size": 3, "target_layer_ids": [0]}, Scoring(7.0, "uniform")),
    ((3, 1, 4, 1e6), {"block_size": 5, "sliding_layers": "all", "sliding_window": 3}, Scoring(4.0, "dpace")),
    ((4, 1, 8, 1e4), {"block_size": 6, "sliding_layers": [0], "sliding_window": 8}, Scoring(10.0, "streak")),
    ((4, 4, 6, 1e4), {"block_size": 4, "fc_layers": 1}, Scoring(3.0, "decay", Mix(0.3, 0.7, 2.0))),
    ((6, 2, 4, 1e4), {"sliding_layers": [1], "sliding_window": 1}, Scoring(10.0, "streak", Mix(0.0, 1.0, 1.0))),
    ((4, 2, 8, 1e4), {"num_draft_layers": 3, "target_layer_ids": [4, 2, 0]}, Scoring(2.0, "dpace", Mix(0.5, 0.5, 4))),
]


@pytest.mark.parametrize(("sizes", "changes", "scoring"), SHAPES)
def test_the_loss_is_that_of_the_plain_loops(tmp_path, tiny, sizes, changes, scoring):
    heads, kv_heads, width, theta = sizes
    shape = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": width}
    folder = random_target(tmp_path / "t", tiny.tokenizer, **shape, rope_parameters={"rope_theta": theta})
    teacher = {"teacher": "final_hidden"} if scoring.mix.kl else {}
    objective = make_objective(tmp_path, scoring, target=str(folder), **teacher, **changes)
    batch = make_batch((15, 5), (10, 1), (7, 6), (8, 4))
    anchors = draw_anchors(batch.response, 4, torch.Generator().manual_seed(heads))
    features, _ = objective.features(batch)
    loss, counts = objective.loss(batch, features, anchors)
    want, num_slots, num_right = restated_loss(objective, batch, anchors)
    assert loss.item() / counts.weight == pytest.approx(want, abs=1e-6)
    assert counts.losses()["loss"] == pytest.approx(want, abs=1e-6)
    assert (sum(counts.slots), sum(counts.right)) == (num_slots, num_right)
    assert counts.blocks == int(anchors.valid.sum())


@pytest.mark.parametrize("mix", [Mix(), Mix(0.3, 0.7, 2.0), Mix(0.0, 1.0)])
@pytest.mark.parametrize("slots", [0, 1, 7])
def test_a_stretch_at_a_time_gives_what_all_at_once_gives(monkeypatch, mix, slots):
    rng = torch.Generator().manual_seed(slots)
    head = torch.nn.Linear(6, 11, bias=False).double().requires_grad_(False)
    hidden = torch.randn(slots, 6, generator=rng, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(slots, 6, generator=rng, dtype=torch.float64) if mix.kl else None
    wanted = torch.randint(0, 11, (slots,), generator=rng)
    upstream = torch.rand(slots, generator=rng, dtype=torch.float64)
    monkeypatch.setattr("trainer.head._AT_A_TIME", {"cpu": 2 * 11})
    scores = head_scores(head, hidden, wanted, teacher, mix)
    (scores.loss * upstream).sum().backward()
    got, hidden.grad = hidden.grad, None
    logits = head(hidden)
    taught = None if teacher is None else head(teacher)
    want = mix.ce * torch.nn.functional.cross_entropy(
        logits, wanted if taught is None else taught.argmax(1), reduction="none"
    )
    if taught is not None:
        p, q = ((s / mix.temperature).log_softmax(1) for s in (taught, logits))
        want = want + mix.kl * mix.temperature**2 * torch.nn.functional.kl_div(
            q, p, log_target=True, reduction="none"
        ).sum(1)
    (want * upstream).sum().backward()
    torch.testing.assert_close(scores.loss, want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(got, hidden.grad, rtol=1e-12, atol=1e-12)
    assert not any(part.requires_grad for part in (scores.ce, scores.kl, scores.ranks, scores.top1_prob))


def test_giving_up_and_computing_again_changes_no_gradient(objective, batch, anchors):
    drafter = objective.drafter
    gradients = []
    for recompute in (False, True):
        drafter.zero_grad()
        drafter.recompute = recompute
        objective.loss(batch, objective.features(batch)[0], anchors)[0].backward()
        gradients.append([p.grad.clone() for p in drafter.parameters()])
    drafter.recompute = False
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("kind", ["structured", "dense"])
def test_padding_gives_finite_gradients(objective, batch, anchors, kind):
    objective = replace(objective, attention=Attention(kind))
    objective.drafter.zero_grad()
    features, _ = objective.features(batch)
    objective.loss(batch, features, anchors)[0].backward()
    assert all(torch.isfinite(p.grad).all() for p in objective.drafter.parameters())


def block_states(objective: Objective, batch: Batch, taps: torch.Tensor, anchor: int) -> torch.Tensor:
    """The drafter's final states of the block of row 0 at `anchor`, as training makes them."""
    seen = []
    hook = objective.drafter.norm.register_forward_hook(lambda _module, _inputs, out: seen.append(out.detach()))
    anchors = Anchors(torch.full((len(batch.tokens), 1), anchor), torch.ones(len(batch.tokens), 1, dtype=torch.bool))
    objective.loss(batch, Features(taps), anchors)
    hook.remove()
    return seen[0][0]


@pytest.mark.parametrize("anchor", [6, 10, 15])
def test_nothing_from_the_anchor_on_reaches_a_block_but_the_anchor_itself(objective, batch, anchor):
    changed = batch.tokens.clone()
    changed[0, anchor + 1 :] = (changed[0, anchor + 1 :] + 7) % 250
    other = Batch(changed, batch.response, batch.lengths)
    taps, other_taps = (objective.features(b)[0].taps for b in (batch, other))
    assert not torch.equal(taps[0, anchor + 1 :], other_taps[0, anchor + 1 :])
    states = block_states(objective, batch, taps, anchor)
    assert torch.equal(states, block_states(objective, other, other_taps, anchor))
    # Not even the feature at the anchor, which is that of a token the drafter knows.
    spoiled = taps.clone()
    spoiled[:, anchor:] = 1e3
    assert torch.equal(states, block_states(objective, batch, spoiled, anchor))
    spoiled[:, anchor - 1] = 1e3
    assert not torch.equal(states, block_states(objective, batch, spoiled, anchor))


@pytest.fixture(scope="module")
def taught(tmp_path_factory, random_folder) -> Objective:
    """Labels from the target's final states; one of the taps is the layer that makes them."""
    scoring = Scoring(2.5, "decay", Mix(0.5, 0.5))
    changes = {"teacher": "final_hidden", "target_layer_ids": [1, 4], "fc_layers": 1}
    return make_objective(tmp_path_factory.mktemp("t"), scoring, target=str(random_folder), **changes)


def labels(objective: Objective, features: Features) -> torch.Tensor:
    return objective.target.head(objective.target.normed(features.final)).argmax(-1)


@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_noise_reaches_the_features_and_no_label(taught, batch, anchors, kind):
    features, _ = taught.features(batch)
    before = features.taps.clone(), features.final.clone()
    heard = noisy(features, kind, 0.1, "fc_input", torch.Generator().manual_seed(1))
    assert torch.equal(features.taps, before[0]) and torch.equal(features.final, before[1])
    assert not torch.equal(heard.taps, features.taps)
    assert heard.final is features.final
    clean_loss, clean = taught.loss(batch, features, anchors)
    loud_loss, loud = taught.loss(batch, heard, anchors)
    assert clean.slots == loud.slots and clean_loss != loud_loss


def test_the_fault_of_noise_on_all_reaches_the_labels_and_hears_the_same_taps(taught, batch):
    features, _ = taught.features(batch)
    seeded = [torch.Generator().manual_seed(1) for _ in range(2)]
    right = noisy(features, "gaussian", 3.0, "fc_input", seeded[0])
    fault = noisy(features, "gaussian", 3.0, "all", seeded[1])
    assert torch.equal(right.taps, fault.taps)
    assert torch.equal(labels(taught, right), labels(taught, features))
    assert not torch.equal(labels(taught, fault), labels(taught, features))


def test_the_teacher_is_the_target_and_a_split_fc_does_not_see_it(taught, batch):
    features, _ = taught.features(batch)
    out = taught.target.model(input_ids=batch.tokens, output_hidden_states=True)
    assert torch.equal(labels(taught, features), out.logits.argmax(-1))
    # Layers 1 and 4 are tapped, of 5; fc takes the first.
    assert taught.target.layer_ids == [1]
    assert torch.equal(features.taps, out.hidden_states[2])
    assert taught.drafter.fc.weight.shape == (24, 24)


@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_noise_has_the_standard_deviation_that_is_logged(kind):
    noise = noisy(Features(torch.zeros(200_000)), kind, 0.25, "all", torch.Generator().manual_seed(3)).taps
    assert float(noise.std()) == pytest.approx(0.25, rel=0.01)
    assert float(noise.mean()) == pytest.approx(0, abs=0.003)
    if kind == "uniform":
        assert float(noise.abs().max()) <= 0.25 * math.sqrt(3)


def test_no_noise_is_no_noise():
    features = Features(torch.ones(3))
    assert noisy(features, "none", 0.5, "all", torch.Generator()) is features
    assert noisy(features, "gaussian", 0.0, "all", torch.Generator()) is features


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": {"kl": 0.7}}, "loss.kl: .*final_hidden"),
        ({"loss": {"ce": 0}}, "both 0"),
        ({"noise": {"on": "all"}}, "noise.on: .*final_hidden"),
        ({"fc_layers": 3}, r"fc_layers: 3 is more than the 2 layers of target_layer_ids \[1, 3\]"),
        ({"sliding_layers": [2]}, "sliding_layers: 2 is no layer of the drafter: its layers are 0 to 1"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(tmp_path, change, words):
    config = checked(tmp_path, **change)
    with pytest.raises(ConfigError, match=words):
        make_scoring(config), windows(config), Target(config)


@pytest.mark.parametrize(("block_size", "gamma"), [(16, 7), (10, 5), (8, 4), (32, 7), (12, 5), (4, 4)])
def test_gamma_follows_the_block(block_size, gamma):
    assert auto_gamma(block_size) == gamma

import json

import pytest
import torch

from trainer.config import ConfigError
from trainer.taps import checked_layer_ids, spread_layer_ids
from trainer.target import Target

from .trainer_setup import case, checked, random_target

CASE = case("case81_layer_ids.expected.json")


@pytest.mark.parametrize("listed", CASE["published_id_lists"], ids=lambda listed: str(listed["num_layers"]))
def test_the_rule_gives_the_published_layers(listed):
    ids = spread_layer_ids(listed["num_layers"], listed["n"])
    assert ids == listed["target_layer_ids"]
    assert [i + 1 for i in ids] == listed["hf_hidden_states_index"]


def test_one_tap_is_in_the_middle():
    assert spread_layer_ids(36, 1) == [18]


@pytest.mark.parametrize("bad", [row for row in CASE["reject"] if "ids" in row], ids=lambda row: row["why"])
def test_ids_that_are_no_layers_are_refused(bad):
    with pytest.raises(ConfigError, match="target_layer_ids"):
        checked_layer_ids(bad["ids"], bad["num_layers"])


def test_a_rule_that_collapses_asks_for_explicit_ids(tmp_path, random_folder):
    with pytest.raises(ConfigError, match="explicit ids"):
        Target(checked(tmp_path, target=str(random_folder), num_draft_layers=3))


def test_features_are_the_outputs_of_the_named_layers(tmp_path, tiny):
    """Layer k puts out the constant k + 1 over an embedding of 0, so a tap on layer 1 must read 2."""
    wanted = CASE["toy_check"]
    assert "[1,9,17] must read [2,10,18]" in wanted
    folder = random_target(tmp_path, tiny.tokenizer, num_hidden_layers=19)
    target = Target(checked(tmp_path, target=str(folder), target_layer_ids=[1, 9, 17]))
    # Registered behind the target's own making, before its taps: hooks run in the order of their registration.
    for k, layer in enumerate(target.model.model.layers):
        layer.register_forward_hook(lambda _module, _inputs, out, k=k: torch.full_like(out, k + 1.0))
    taps = target.features(torch.zeros(1, 3, dtype=torch.long)).taps
    assert taps.shape == (1, 3, 3 * 24)
    assert [float(part.unique()) for part in taps.chunk(3, dim=-1)] == [2.0, 10.0, 18.0]


@pytest.mark.parametrize("ids", [[0], [1, 3], [4, 2], [0, 1, 2, 3, 4]])
def test_features_are_hidden_states_of_one_higher_index(tmp_path, random_folder, ids):
    target = Target(checked(tmp_path, target=str(random_folder), target_layer_ids=ids))
    tokens = torch.arange(40).view(2, 20)
    states = target.model(input_ids=tokens, output_hidden_states=True).hidden_states
    want = torch.cat([states[i + 1] for i in ids], dim=-1)
    assert torch.equal(target.features(tokens).taps, want)


def test_a_target_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere holds no config\.json"):
        Target(checked(tmp_path, target=str(tmp_path / "nowhere")))


def test_a_mask_token_must_be_a_row_of_the_embedding(tmp_path):
    with pytest.raises(ConfigError, match="mask_token_id: 272 is no row of the embedding"):
        Target(checked(tmp_path, mask_token_id=272))


def test_without_a_mask_token_the_first_unused_row_is_taken(tmp_path, random_folder):
    settings = random_folder / "tokenizer_config.json"
    folder = tmp_path / "unmasked"
    folder.mkdir()
    for file in random_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    told = json.loads(settings.read_text())
    del told["mask_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    assert Target(checked(tmp_path, target=str(folder))).mask_token_id == 260


def test_weights_are_frozen_and_nothing_is_fetched(tiny):
    assert not any(p.requires_grad for p in tiny.model.parameters())
    assert not tiny.model.training

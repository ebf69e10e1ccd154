import json

import pytest
import torch
from safetensors.torch import load_file

from trainer import checkpoint
from trainer.config import ConfigError, nest
from trainer.errors import RunError
from trainer.model import Drafter
from trainer.target import Target
from trainer.zlab import draft_config, draft_shape, windows

from .trainer_setup import case, checked


@pytest.fixture
def drafter(tiny) -> Drafter:
    return Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(4))


@pytest.fixture
def told(tiny, drafter) -> dict:
    return draft_config(tiny, drafter.shape, 4)


def save(folder, step, drafter, told, keep=9, best=0):
    return checkpoint.write(folder, checkpoint.Saved(step, drafter, told, {"step": step}), keep, best)


def test_weights_and_config_are_those_of_z_lab(tmp_path, drafter, told):
    want = case("case99_export_contract.expected.json")
    place = save(tmp_path, 3, drafter, told)
    weights = load_file(place / "model.safetensors")
    assert len(weights) == 3 + 11 * 2
    assert weights["fc.weight"].shape == (160, 2 * 160)
    names = {name.partition(".weight")[0] for name in weights}
    assert {"fc", "hidden_norm", "norm", "layers.1.self_attn.q_norm", "layers.0.mlp.gate_proj"} <= names
    assert not any("embed" in name or "lm_head" in name for name in names)
    written = json.loads((place / "config.json").read_text())
    assert set(want["config.json"]["dflash_config"]) <= set(written["dflash_config"])
    assert written["block_size"] == written["dflash_config"]["block_size"] == 4
    assert written["dflash_config"]["target_layer_ids"] == [1, 3]
    assert written["dflash_config"]["mask_token_id"] == 259
    assert (written["rope_theta"], written["rope_scaling"]) == (10000.0, None)
    assert written["layer_types"] == ["full_attention"] * 2
    again = Drafter(drafter.shape)
    again.load_state_dict(weights)
    assert all(torch.equal(a, b) for a, b in zip(drafter.parameters(), again.parameters(), strict=True))


def test_the_newest_is_found_and_old_ones_go(tmp_path, drafter, told):
    assert checkpoint.find(tmp_path / "none", told) == (None, [])
    for step in (8, 9, 10, 11):
        save(tmp_path, step, drafter, told, keep=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-10", "step-11", "step-9"]
    found, passed_over = checkpoint.find(tmp_path, told)
    assert found is not None and found.name == "step-11" and passed_over == []
    assert found.state() == {"step": 11}


def test_the_best_stays_beside_the_newest(tmp_path, drafter, told):
    for step in (1, 2, 3, 4, 5):
        save(tmp_path, step, drafter, told, keep=2, best=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-2", "step-4", "step-5"]
    save(tmp_path, 6, drafter, told, keep=2, best=6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-5", "step-6"]


def cut_short(place):
    place.write_bytes(place.read_bytes()[:100])


def flip_a_byte(place):
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(bytes(data))


@pytest.mark.parametrize("file", ["model.safetensors", "state.pt", "manifest.json", "config.json"])
@pytest.mark.parametrize(
    "damage", [cut_short, flip_a_byte, lambda place: place.unlink(), lambda place: place.write_bytes(b"")]
)
def test_a_damaged_newest_is_passed_over_and_named(tmp_path, drafter, told, file, damage):
    save(tmp_path, 10, drafter, told)
    damage(save(tmp_path, 20, drafter, told) / file)
    found, passed_over = checkpoint.find(tmp_path, told)
    assert found is not None and found.name == "step-10"
    assert len(passed_over) == 1 and passed_over[0].startswith("step-20 is damaged and was passed over")


def test_a_save_that_was_cut_off_is_no_checkpoint(tmp_path, drafter, told, monkeypatch):
    save(tmp_path, 10, drafter, told)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pathlib.Path.rename", die)
        save(tmp_path, 20, drafter, told)
    found, passed_over = checkpoint.find(tmp_path, told)
    assert found is not None and found.name == "step-10" and passed_over == []
    save(tmp_path, 20, drafter, told)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-10", "step-20"]


def test_a_run_does_not_begin_anew_over_checkpoints_that_are_all_damaged(tmp_path, drafter, told):
    (save(tmp_path, 10, drafter, told) / "manifest.json").unlink()
    with pytest.raises(RunError, match="no checkpoint is whole"):
        checkpoint.find(tmp_path, told)


def test_another_mask_token_is_refused_with_both_values(tmp_path, tiny, drafter, told):
    want = case("case98_resume_meta.expected.json")
    saved, now = want["saved"], want["config_now"]
    told["dflash_config"] |= {key: saved[key] for key in ("mask_token_id", "block_size", "target_layer_ids")}
    save(tmp_path, 10, drafter, told)
    other = {**told, "dflash_config": {**told["dflash_config"], "mask_token_id": now["mask_token_id"]}}
    with pytest.raises(ConfigError, match=r"mask_token_id: .*151669.*151670"):
        checkpoint.find(tmp_path, other)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [({"target_layer_ids": [0, 3]}, r"\[1, 3\]", r"\[0, 3\]"), ({"num_draft_layers": 1}, "2", "1")],
)
def test_another_drafter_is_refused(tmp_path, drafter, told, change, old, new):
    save(tmp_path, 10, drafter, told)
    config = checked(tmp_path, **{"target_layer_ids": [1, 3], **change})
    target = Target(config)
    with pytest.raises(ConfigError, match=f"{old}.*{new}"):
        checkpoint.find(tmp_path, draft_config(target, draft_shape(target, windows(config)), 4))


def test_another_gamma_is_only_noted(tmp_path):
    before = {**checked(tmp_path), "gamma": 7.0}
    state = {"config": nest(before), "data_hash": "a"}
    assert checkpoint.changes(state, {**before, "gamma": 10.0}, "a") == [
        "gamma was 7.0 before the resume and is 10.0 now"
    ]
    assert checkpoint.changes(state, {**before, "threads": 2, "run_dir": "/elsewhere"}, "a") == []
    assert checkpoint.changes(state, before, "b") == ["the data is not what it was before the resume"]


@pytest.mark.parametrize("text", ["[]", "7", '{"sha256": null}', '{"sha256": {}}'])
def test_a_manifest_that_speaks_of_no_file_is_damage(tmp_path, drafter, told, text):
    save(tmp_path, 10, drafter, told)
    (save(tmp_path, 20, drafter, told) / "manifest.json").write_text(text)
    found, passed_over = checkpoint.find(tmp_path, told)
    assert found is not None and found.name == "step-10" and len(passed_over) == 1


def test_damaged_ones_that_were_passed_over_push_no_new_one_out(tmp_path, drafter, told):
    """Whole: 10, and what is saved from there on; 80 and 90 were damaged."""
    for step in (10, 80, 90):
        save(tmp_path, step, drafter, told)
    for step in (80, 90):
        (tmp_path / f"step-{step}" / "state.pt").write_bytes(b"")
    for step in (11, 12):
        assert save(tmp_path, step, drafter, told, keep=1).exists()
    found, _ = checkpoint.find(tmp_path, told)
    assert found is not None and found.name == "step-12"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-12", "step-80", "step-90"]
    save(tmp_path, 90, drafter, told, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-90"]


def test_what_other_programs_leave_there_is_in_nobodys_way(tmp_path, drafter, told):
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "step-1").write_text("no folder")
    save(tmp_path, 10, drafter, told)
    assert (tmp_path / ".DS_Store").exists()


@pytest.mark.parametrize(
    ("key", "now"),
    [("intermediate_size", 96), ("num_attention_heads", 2), ("num_key_value_heads", 4), ("head_dim", 8),
     ("attention_bias", True), ("rope_theta", 5e5)],
)  # fmt: skip
def test_a_drafter_of_another_architecture_is_refused_with_both_values(tmp_path, drafter, told, key, now):
    save(tmp_path, 10, drafter, told)
    with pytest.raises(ConfigError, match=f"{key}: the run's checkpoint has {told[key]} and the config says {now};"):
        checkpoint.find(tmp_path, {**told, key: now})

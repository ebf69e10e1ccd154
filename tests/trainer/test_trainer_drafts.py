"""Drafters out of folders and into them: names and shapes as their readers want them, and nothing lost on the way."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from trainer import checkpoint, drafts, export
from trainer.batches import collate
from trainer.blocks import every_anchor
from trainer.data import answered
from trainer.errors import ConfigError
from trainer.loss import Scoring
from trainer.model import Drafter
from trainer.run import run
from trainer.step import Objective
from trainer.target import Target
from trainer.zlab import draft_config, draft_shape

from .trainer_setup import ROOT, checked, events, write_rows

BLOCK = 4
TINY = ROOT / "trainer" / "tiny_target"


@pytest.fixture
def drafter(tiny) -> Drafter:
    return Drafter(draft_shape(tiny, (None, 7)), torch.Generator().manual_seed(4))


@pytest.fixture
def saved(tmp_path, tiny, drafter):
    told = draft_config(tiny, drafter.shape, BLOCK)
    return checkpoint.write(tmp_path / "checkpoints", checkpoint.Saved(3, drafter, told, {"step": 3}), 1)


def logits(tiny, drafter: Drafter) -> torch.Tensor:
    states = []
    hook = drafter.norm.register_forward_hook(lambda _norm, _inputs, out: states.append(out.detach()))
    batch = collate([answered(list(range(30)), 4)], torch.device("cpu"))
    objective = Objective(tiny, drafter, BLOCK, Scoring(4.0))
    objective.loss(batch, objective.features(batch)[0], every_anchor(batch.response, 3))
    hook.remove()
    return tiny.logits(states[0])


def expected_shapes(num_layers: int, hidden: int, taps: int) -> dict[str, list[int]]:
    """The tiny target's sizes: 4 query and 2 key heads of 32, 448 between."""
    shapes = {"fc.weight": [hidden, taps * hidden], "hidden_norm.weight": [hidden], "norm.weight": [hidden]}
    per_layer = {
        "input_layernorm": [hidden],
        "post_attention_layernorm": [hidden],
        "self_attn.q_proj": [128, hidden],
        "self_attn.k_proj": [64, hidden],
        "self_attn.v_proj": [64, hidden],
        "self_attn.o_proj": [hidden, 128],
        "self_attn.q_norm": [32],
        "self_attn.k_norm": [32],
        "mlp.gate_proj": [448, hidden],
        "mlp.up_proj": [448, hidden],
        "mlp.down_proj": [hidden, 448],
    }
    for i in range(num_layers):
        shapes |= {f"layers.{i}.{name}.weight": shape for name, shape in per_layer.items()}
    return shapes


def shapes_in(folder) -> dict[str, list[int]]:
    return {name: list(tensor.shape) for name, tensor in load_file(folder / "model.safetensors").items()}


def test_z_labs_format_holds_the_drafter_and_nothing_else(tmp_path, tiny, drafter, saved):
    out = tmp_path / "out"
    assert export.main([str(saved), str(out), "--dtype", "float32"]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "model.safetensors"]
    assert shapes_in(out) == expected_shapes(2, 160, 2) and len(shapes_in(out)) == 3 + 11 * 2
    again = drafts.read(out)
    assert (again.block_size, again.layer_ids) == (BLOCK, [1, 3])
    assert again.drafter().shape == drafter.shape
    assert torch.equal(logits(tiny, again.drafter()), logits(tiny, drafter))


def test_speculators_format_adds_what_is_the_targets(tmp_path, tiny, drafter, saved):
    out = tmp_path / "out"
    asked = [str(saved), str(out), "--to", "speculators", "--target", str(TINY), "--dtype", "float32"]
    assert export.main(asked) == 0
    of_target = {"embed_tokens.weight": [272, 160], "lm_head.weight": [272, 160]}
    assert shapes_in(out) == {**expected_shapes(2, 160, 2), **of_target}
    weights = load_file(out / "model.safetensors")
    assert torch.equal(weights["embed_tokens.weight"], tiny.model.get_input_embeddings().weight)
    assert torch.equal(weights["lm_head.weight"], tiny.model.get_output_embeddings().weight)
    told = json.loads((out / "config.json").read_text())
    assert told["speculators_model_type"] == "dflash"
    # Hidden states are counted from the embedding there.
    assert told["aux_hidden_state_layer_ids"] == [2, 4]
    assert (told["block_size"], told["mask_token_id"], told["draft_vocab_size"]) == (BLOCK, 259, 272)
    assert (told["sample_from_anchor"], told["sliding_window_non_causal"]) == (False, False)
    layers = told["transformer_layer_config"]
    assert (layers["num_hidden_layers"], layers["model_type"], layers["rope_theta"]) == (2, "qwen3", 1e4)
    assert layers["layer_types"] == ["full_attention", "sliding_attention"] and layers["sliding_window"] == 7
    assert not {"dflash_config", "auto_map", "num_target_layers", "block_size"} & set(layers)
    of = told["speculators_config"]
    assert (of["algorithm"], of["default_proposal_method"]) == ("dflash", "greedy")
    assert of["proposal_methods"] == [{"proposal_type": "greedy", "speculative_tokens": BLOCK - 1}]
    assert of["verifier"] == {"name_or_path": str(TINY), "architectures": ["Qwen3ForCausalLM"]}
    again = drafts.read(out)
    assert again.layer_ids == [1, 3] and again.drafter().shape == drafter.shape
    assert torch.equal(logits(tiny, again.drafter()), logits(tiny, drafter))


def test_tied_embeddings_are_the_head_too(tmp_path, random_folder):
    tied = tmp_path / "tied"
    tied.mkdir()
    weights = load_file(random_folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, tied / "model.safetensors")
    embedding, head = export.embedding_and_head(tied)
    assert torch.equal(embedding, weights["model.embed_tokens.weight"]) and head is embedding


def test_older_configs_are_read(saved, drafter):
    """block_size at the top only, no list of layer types, RoPE where transformers 5 writes it."""
    place = saved / "config.json"
    told = json.loads(place.read_text())
    del told["dflash_config"]["block_size"], told["layer_types"], told["rope_theta"], told["head_dim"]
    told |= {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}, "hidden_size": 160}
    place.write_text(json.dumps({**told, "num_attention_heads": 5}))
    draft = drafts.read(saved)
    assert draft.block_size == BLOCK and draft.told["rope_theta"] == 5e5
    assert drafts.shape_of(draft.told).windows == (None, None)
    assert drafts.shape_of(draft.told).head_dim == 32


@pytest.fixture
def settings(tmp_path):
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 9], "response": text[i + 9 : i + 30]} for i in range(0, 300, 31)]
    held_out = [{"prompt": "import ", "split": "eval", "max_new_tokens": 14}]
    place = write_rows(tmp_path / "rows.jsonl", train + held_out)

    def make(name: str, **changes):
        return checked(tmp_path / name, **{"data": {"path": str(place)}, "lr": 3e-3, "total_steps": 12, **changes})

    return make


@pytest.mark.parametrize("form", ["zlab", "speculators"])
def test_a_run_goes_on_from_a_drafter_that_was_exported(tmp_path, settings, form):
    assert run(settings("first")) == 0
    newest = tmp_path / "first" / "checkpoints" / "step-12"
    out = tmp_path / "out"
    export.export(newest, out, form, TINY, "float32")
    assert run(settings("second", init_from=str(out), total_steps=1)) == 0
    last, first = events(tmp_path / "first", "eval")[-1], events(tmp_path / "second", "eval")[0]
    told = ("tau_linear_macro", "eval_loss", "accept_len", "accept_hist")
    assert [last[key] for key in told] == [first[key] for key in told]
    assert events(tmp_path / "first", "eval")[0]["eval_loss"] != first["eval_loss"]
    assert events(tmp_path / "second", "start")[0]["config"]["init_from"] == str(out)


def test_a_run_that_has_begun_needs_the_drafter_that_it_went_on_from_no_more(tmp_path, settings):
    """It was of another width than one that is built like the target."""
    config = settings("first", total_steps=1)
    target = Target(config)
    drafter = Drafter(replace(draft_shape(target, (None, None)), intermediate_size=96))
    told = draft_config(target, drafter.shape, BLOCK)
    given = checkpoint.write(tmp_path / "given", checkpoint.Saved(0, drafter, told, {}), 1)
    assert run(settings("run", init_from=str(given), total_steps=2)) == 0
    shutil.rmtree(given)
    assert run(settings("run", init_from=str(given), total_steps=3)) == 0
    assert [r["step"] for r in events(tmp_path / "run", "train")] == [1, 2, 3]
    made = drafts.read(tmp_path / "run" / "checkpoints" / "step-3")
    assert made.weights["layers.0.mlp.up_proj.weight"].shape == (96, 160)
    assert run(settings("other", init_from=str(given))) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target_layer_ids": [0, 3]}, r"target_layer_ids \[1, 3\] and this run has \[0, 3\]"),
        ({"mask_token_id": 260}, "mask_token_id 259 and this run has 260"),
        ({"sliding_layers": "none"}, r"sliding windows \(None, 7\) and this run has \(None, None\)"),
        ({"num_draft_layers": 1, "sliding_layers": "none", "target_layer_ids": [1, 3]}, "num_draft_layers 2 .* has 1"),
    ],
)
def test_a_drafter_of_another_kind_is_refused_with_both_values(tmp_path, settings, saved, capsys, change, words):
    alike = {"sliding_layers": [1], "sliding_window": 7, "total_steps": 1}
    assert run(settings("run", init_from=str(saved), **{**alike, **change})) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and re.search(f"init_from: the drafter in .* has {words}", line)


def test_what_is_no_drafter_is_named(tmp_path, saved, capsys):
    with pytest.raises(ConfigError, match=r"nowhere: holds no drafter that can be read"):
        drafts.read(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"config\.json is not a DFlash drafter's \('dflash_config' is missing\)"):
        drafts.read(TINY)
    weights = saved / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    with pytest.raises(ConfigError, match="a file of weights is damaged"):
        drafts.read(saved)
    weights.unlink()
    with pytest.raises(ConfigError, match=r"holds no \.safetensors file"):
        drafts.read(saved)
    weights.write_bytes(whole)
    told = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**told, "intermediate_size": 100}))
    with pytest.raises(
        ConfigError, match=r"do not fit \(layers\.0\.mlp\.gate_proj\.weight is \[448, 160\] where .* \[100, 160\]"
    ):
        drafts.read(saved).drafter()
    (saved / "config.json").write_text(json.dumps({**told, "num_key_value_heads": 3}))
    with pytest.raises(ConfigError, match="3 key heads cannot serve 4 heads"):
        drafts.read(saved).drafter()
    (saved / "config.json").write_text(json.dumps(told))
    tensors = load_file(weights)
    for change, words in [
        (lambda name: f"model.{name}", r"the weights lack fc\.weight and 24 more"),
        (lambda name: name.replace("norm.weight", "norm.bias"), r"the weights lack hidden_norm\.weight and \d+ more"),
        (
            lambda name: name.replace("layers.1", "layers.7"),
            r"the weights lack layers\.1\.input_layernorm\.weight and 10 m",
        ),
    ]:
        save_file({change(name): tensor for name, tensor in tensors.items()}, weights)
        with pytest.raises(ConfigError, match=words):
            drafts.read(saved).drafter()
    save_file({**tensors, "d2t": torch.zeros(4)}, weights)
    with pytest.raises(ConfigError, match=r"there are weights that are no drafter's: d2t\)"):
        drafts.read(saved).drafter()


WRONG = {
    "intermediate_size": [None, "x", -1, [], True],
    "num_attention_heads": [0, None],
    "num_key_value_heads": ["x", -1],
    "head_dim": [0, 2.5],
    "vocab_size": [None, 100],
    "rms_norm_eps": ["x", -1],
    "layer_types": [7, ["full_attention"], ["full_attention", "linear_attention"]],
    "sliding_window": ["x", -1],
    "block_size": ["x", 1, -4],
    "mask_token_id": [None, "x", -1, 272],
    "target_layer_ids": [None, "x", 3, [], [1, "a"], [-1, 3], [3, 3]],
}


@pytest.mark.parametrize("key", WRONG)
def test_a_config_that_no_drafter_can_be_built_of_is_named_with_what_it_says(saved, key):
    place = saved / "config.json"
    told = json.loads(place.read_text())
    for value in WRONG[key]:
        inner = {key: value} if key in told["dflash_config"] else {}
        outer = {} if key in ("mask_token_id", "target_layer_ids") else {key: value}
        place.write_text(json.dumps({**told, **outer, "dflash_config": {**told["dflash_config"], **inner}}))
        with pytest.raises(ConfigError, match=r"config\.json is not a DFlash drafter's \("):
            drafts.read(saved)


@pytest.mark.parametrize("text", ["[]", "null", '"x"', '{"dflash_config": "ab"}', '{"dflash_config": null}'])
def test_json_that_is_no_drafters_config_is_named(saved, text):
    (saved / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json is not a DFlash drafter's \("):
        drafts.read(saved)


@pytest.mark.parametrize("form", ["zlab", "speculators"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sample_from_anchor": True}, "sample_from_anchor = true"),
        ({"causal": False}, "its sliding layers see what comes after a slot"),
        ({"draft_vocab_size": 128}, "drafts 128 tokens of 272"),
    ],
)
def test_a_drafter_of_another_layout_is_refused_and_not_misread(tmp_path, saved, form, change, words):
    """Its weights fit, and it would be right by chance only."""
    out = tmp_path / "out"
    export.export(saved, out, form, TINY, "float32")
    place = out / "config.json"
    told = json.loads(place.read_text())
    if form == "zlab" and "draft_vocab_size" not in change:
        change = {"dflash_config": {**told["dflash_config"], **change}}
    if form == "speculators" and "causal" in change:
        change = {"sliding_window_non_causal": True}
    place.write_text(json.dumps({**told, **change}))
    with pytest.raises(ConfigError, match=words):
        drafts.read(out)


def test_the_window_of_sliding_layers_is_read_where_servers_read_it(saved, drafter):
    place = saved / "config.json"
    told = json.loads(place.read_text())
    assert told["dflash_config"]["swa_window_size"] == 7
    place.write_text(json.dumps({**told, "sliding_window": None}))
    assert drafts.read(saved).drafter().shape == drafter.shape


def test_an_export_that_cannot_be_made_is_one_line(tmp_path, saved, random_folder, capsys):
    for asked, words in [
        ([str(saved), str(tmp_path / "a"), "--to", "speculators"], "--target: speculators' format holds"),
        ([str(saved), str(tmp_path / "a"), "--to", "speculators", "--target", str(tmp_path)], "no folder of a Hugging"),
        ([str(saved), str(tmp_path / "a"), "--to", "speculators", "--target", str(random_folder)], r"is [272, 24] and"),
        ([str(saved), str(tmp_path)], "is there already"),
    ]:
        assert export.main(asked) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and words in line
    assert not (tmp_path / "a").exists()

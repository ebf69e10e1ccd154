"""A checkpoint of ours against z-lab's public class that loads it. Words: a folder of its own."""

import json
import sys
from pathlib import Path

import torch
from dflash import DFlashDraftModel
from safetensors import safe_open
from transformers import AutoTokenizer

from tests.trainer.trainer_setup import ROOT, checked, random_target
from trainer import checkpoint, drafts, export
from trainer.beginning import make_drafter
from trainer.blocks import Anchors, visible
from trainer.model import attend_dense
from trainer.target import Target
from trainer.zlab import draft_config

BLOCK, PREFIX = 6, 17


def listed(
    hidden: int, inner: int, taps: int, width: int, heads: int, kv_heads: int, layers: int
) -> dict[str, list[int]]:
    """Names and shapes of z-lab's files, written down once more."""
    shapes = {"fc.weight": [hidden, taps * hidden], "hidden_norm.weight": [hidden], "norm.weight": [hidden]}
    for i in range(layers):
        each = {
            "input_layernorm": [hidden],
            "post_attention_layernorm": [hidden],
            "self_attn.q_proj": [heads * width, hidden],
            "self_attn.k_proj": [kv_heads * width, hidden],
            "self_attn.v_proj": [kv_heads * width, hidden],
            "self_attn.o_proj": [hidden, heads * width],
            "self_attn.q_norm": [width],
            "self_attn.k_norm": [width],
            "mlp.gate_proj": [inner, hidden],
            "mlp.up_proj": [inner, hidden],
            "mlp.down_proj": [hidden, inner],
        }
        shapes |= {f"layers.{i}.{name}.weight": shape for name, shape in each.items()}
    return shapes


torch.manual_seed(0)
folder = Path(sys.argv[1])
random_target(folder / "target", AutoTokenizer.from_pretrained(ROOT / "trainer" / "tiny_target"))
worst = {}
for name, sliding in (("full", "none"), ("sliding", "all"), ("mixed", [1])):
    config = checked(
        folder,
        target=str(folder / "target"),
        target_layer_ids=[0, 2],
        block_size=BLOCK,
        sliding_layers=sliding,
        sliding_window=9,
    )
    target = Target(config)
    drafter = make_drafter(config, target)
    # Norms of fresh weights are all 1, and would hide one that is not read.
    for parameter in drafter.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    told = draft_config(target, drafter.shape, BLOCK)
    place = checkpoint.write(folder / name, checkpoint.Saved(1, drafter, told, {"step": 1}), 1)
    export.export(place, folder / f"{name}-zlab", "zlab", None, "float32")
    with safe_open(folder / f"{name}-zlab" / "model.safetensors", framework="pt") as file:
        shapes = {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118
    assert shapes == listed(24, 40, 2, 8, 4, 2, 2), shapes
    theirs, loaded = DFlashDraftModel.from_pretrained(folder / f"{name}-zlab", output_loading_info=True)
    assert not any(loaded[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), loaded
    assert (theirs.target_layer_ids, theirs.block_size) == ([0, 2], BLOCK)
    assert theirs.mask_token_id == target.mask_token_id

    # One block behind a prefix, as a server drafts it.
    tokens = torch.randint(0, 256, (1, PREFIX + 1))
    taps = target.features(tokens).taps[:, :PREFIX]
    block = target.embed(torch.cat((tokens[:, PREFIX:], torch.full((1, BLOCK - 1), target.mask_token_id)), dim=1))
    places = torch.arange(PREFIX + BLOCK)[None]
    with torch.no_grad():
        hidden = theirs(position_ids=places, noise_embedding=block, target_hidden=taps)
        given = theirs.compute_logits(hidden, target.output_head)
        # Read anew from the same folder, by our own code.
        ours = drafts.read(folder / f"{name}-zlab").drafter()
        anchors = Anchors(torch.tensor([[PREFIX]]), torch.tensor([[True]]))
        attends = {w: attend_dense(visible(anchors, PREFIX, BLOCK, w)) for w in set(ours.shape.windows)}
        context = ours.context(taps, target.rotary(places[:, :PREFIX]))
        out = ours(block, target.rotary(places[:, PREFIX:]), context, attends)
        worst[name] = float((target.logits(out) - given).abs().max())
where = max(worst, key=worst.__getitem__)
print(
    json.dumps(
        {
            "difference": worst[where],
            "of": f"most where layers are {where}, logits up to {float(given.abs().max()):.0f}",
        }
    )
)

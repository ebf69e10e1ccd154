"""Our loss and gradients against SpecForge's. Words: a folder of its own."""

import json
import sys
from pathlib import Path

import torch
from specforge.algorithms.common.dflash_family_model import OnlineDFlashModel
from specforge.modeling.draft.dflash import DFlashDraftModel
from transformers import AutoTokenizer, Qwen3Config

from tests.trainer.trainer_setup import ROOT, checked, random_target
from trainer.batches import Batch
from trainer.beginning import make_drafter
from trainer.blocks import Anchors
from trainer.loss import make_scoring
from trainer.step import Objective
from trainer.target import Target
from trainer.zlab import draft_config

torch.manual_seed(0)
folder = Path(sys.argv[1])
random_target(folder / "target", AutoTokenizer.from_pretrained(ROOT / "trainer" / "tiny_target"))
lengths = torch.tensor([60, 41])
# Prompts of unequal length, and a second turn.
response = torch.arange(60).expand(2, -1) >= torch.tensor([[5], [12]])
response = response & (torch.arange(60) < lengths[:, None]) & ~((torch.arange(60) >= 30) & (torch.arange(60) < 34))
batch = Batch(torch.randint(0, 256, (2, 60)), response, lengths)
worst = {}
for name, sliding in (("full", "none"), ("sliding", "all"), ("mixed", [1])):
    config = checked(
        folder,
        target=str(folder / "target"),
        target_layer_ids=[0, 2],
        block_size=6,
        num_anchors=9,
        sliding_layers=sliding,
        sliding_window=11,
    )
    target = Target(config)
    objective = Objective(target, make_drafter(config, target), 6, make_scoring(config))
    theirs = Qwen3Config(**draft_config(target, objective.drafter.shape, 6))
    theirs._attn_implementation = "sdpa"
    draft = DFlashDraftModel(theirs)
    draft.load_state_dict(objective.drafter.state_dict())
    model = OnlineDFlashModel(
        draft, target.output_head, target.model.get_input_embeddings(), target.mask_token_id, 6, "sdpa", 9, 4.0
    )
    features = target.features(batch.tokens)
    # Their anchors are drawn inside: they are kept, and given to ours.
    drawn, draw = [], model._sample_anchor_positions
    model._sample_anchor_positions = lambda *words, draw=draw, drawn=drawn: drawn.append(draw(*words)) or drawn[-1]
    loss, _, _ = model(batch.tokens, features.taps, response.float())
    loss.backward()
    summed, counts = objective.loss(batch, features, Anchors(*drawn[0]))
    ours = summed / counts.weight
    ours.backward()
    worst[f"loss, {name}"] = abs(float(ours.detach()) - float(loss.detach()))
    given = dict(draft.named_parameters())
    worst[f"gradients, {name}"] = max(
        float((own.grad - given[key].grad).abs().max()) for key, own in objective.drafter.named_parameters()
    )
where = max(worst, key=worst.__getitem__)
print(
    json.dumps(
        {
            "difference": worst[where],
            "of": f"the {where}; the losses at most {max(v for k, v in worst.items() if 'loss' in k):.1g}",
        }
    )
)

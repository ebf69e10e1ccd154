"""SpecForge's steps: its drafter, its objective, AdamW. Words: a shape, how many threads."""

from collections.abc import Callable

import torch
from specforge.algorithms.common.dflash_family_model import OnlineDFlashModel
from specforge.modeling.draft.dflash import DFlashDraftModel
from transformers import Qwen3Config

from tests.bench.shapes import CLIP, LR, Clock, Shape, Target, draft_config, serve


def make(shape: Shape) -> Callable[[int, Clock], float]:
    target = Target(shape)
    config = Qwen3Config(**draft_config(shape, target.config))
    # Its flex_attention has no backward on a CPU.
    config._attn_implementation = "sdpa"
    model = OnlineDFlashModel(
        DFlashDraftModel(config),
        target.model.lm_head,
        target.model.model.embed_tokens,
        shape.mask_token_id,
        shape.block_size,
        "sdpa",
        shape.num_anchors,
        shape.gamma,
    )
    held = list(model.draft_model.parameters())
    optimizer = torch.optim.AdamW(held, lr=LR, weight_decay=0.0)
    batches = [(tokens, response.float()) for tokens, response in shape.batches()]

    def step(index: int, clock: Clock) -> float:
        tokens, response = batches[index % len(batches)]
        with clock.target():
            features, _ = target.features(tokens)
        optimizer.zero_grad()
        loss, _, _ = model(tokens, features, response)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(held, CLIP)
        optimizer.step()
        return loss.item()

    return step


serve(make)

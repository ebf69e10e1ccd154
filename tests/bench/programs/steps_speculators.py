"""speculators' steps: its drafter, its loss, AdamW. Words: a shape, how many threads.

It takes one row a step: several sequences stand in it side by side, as its own trainer packs them.
"""

from collections.abc import Callable

import torch
from speculators.losses import resolve_loss_config
from speculators.models.dflash import DFlashDraftModel
from transformers import Qwen3Config

from tests.bench.shapes import CLIP, LR, Clock, Shape, Target, draft_config, serve


def make(shape: Shape) -> Callable[[int, Clock], float]:
    target = Target(shape)
    model = DFlashDraftModel.from_training_args(
        Qwen3Config(**draft_config(shape, target.config)),
        verifier_name_or_path=str(target.folder),
        draft_vocab_size=target.config.vocab_size,
        block_size=shape.block_size,
        mask_token_id=shape.mask_token_id,
        # Its layers are counted from the embedding.
        target_layer_ids=[i + 1 for i in shape.layer_ids],
        # Its flex_attention has no backward on a CPU, its fused losses want Triton.
        draft_attn_impl="sdpa",
    )
    loss_config = resolve_loss_config("ce", "eager")
    held = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(held, lr=LR, weight_decay=0.0)
    documents = torch.arange(shape.sequences).repeat_interleave(shape.tokens)[None]
    positions = torch.arange(shape.tokens).repeat(shape.sequences)[None]
    batches = shape.batches()

    def step(index: int, clock: Clock) -> float:
        tokens, response = batches[index % len(batches)]
        with clock.target():
            features, final = (part.reshape(1, shape.batch_tokens, -1) for part in target.features(tokens))
        optimizer.zero_grad()
        _, loss, _ = model(
            hidden_states=features,
            input_ids=tokens.view(1, -1),
            loss_mask=response.reshape(1, -1).float(),
            verifier_last_hidden_states=final,
            document_ids=documents,
            position_ids=positions,
            loss_config=loss_config,
            gamma=shape.gamma,
            max_anchors=shape.num_anchors * shape.sequences,
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(held, CLIP)
        optimizer.step()
        return loss.item()

    return step


serve(make)

"""Our own trainer's step, as a run takes it, on the batches of a shape."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.bench.shapes import CLIP, LR, Shape
from tests.trainer.trainer_setup import checked
from trainer.attention import Attention
from trainer.batches import Batch
from trainer.beginning import make_drafter
from trainer.engine import Engine, Step, be_exact
from trainer.heap import keep_memory
from trainer.loss import make_scoring
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.step import Objective
from trainer.target import Target


def stepper(shape: Shape, target: Path, **changes: Any) -> Callable[[], Step]:
    """Takes the next step; `changes` are keys of a config."""
    config = checked(
        Path("/nowhere"),
        **{
            "target": str(target),
            "num_draft_layers": shape.num_layers,
            "block_size": shape.block_size,
            "num_anchors": shape.num_anchors,
            "target_layer_ids": shape.layer_ids,
            "mask_token_id": shape.mask_token_id,
            "gamma": shape.gamma,
            "lr": LR,
            "max_grad_norm": CLIP,
            **changes,
        },
    )
    # As a run on a CPU does.
    be_exact(config["device"])
    keep_memory()
    frozen = Target(config)
    objective = Objective(
        frozen,
        make_drafter(config, frozen),
        shape.block_size,
        make_scoring(config),
        attention=Attention(config["attention"]),
    )
    engine = Engine(objective, Optimizer(objective.drafter, config), Ranks(), config)
    lengths = torch.full((shape.sequences,), shape.tokens)
    batches = [
        Batch(tokens.to(frozen.device), response.to(frozen.device), lengths) for tokens, response in shape.batches()
    ]
    numbered = itertools.cycle(enumerate(batches))

    return lambda: engine.step(iter([next(numbered)]), LR, 0.0)

"""How gradients become steps."""

import torch

from trainer.config import Config
from trainer.model import Drafter


def make_optimizer(drafter: Drafter, config: Config) -> torch.optim.Optimizer:
    """AdamW; matrices decay, norms and biases do not. The learning rate is set anew before every step."""
    matrices = [p for p in drafter.parameters() if p.ndim == 2]
    others = [p for p in drafter.parameters() if p.ndim != 2]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
        lr=config["lr"],
        betas=(0.9, config["adam_beta2"]),
    )

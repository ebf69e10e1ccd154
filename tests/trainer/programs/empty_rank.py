"""Five steps of two batches, the second without a response, shared out among the processes there are."""

import json
import sys
from pathlib import Path

import torch

from tests.trainer.trainer_setup import checked
from trainer.batches import collate
from trainer.data import answered
from trainer.engine import Engine
from trainer.loss import Scoring
from trainer.model import Drafter
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.step import Objective
from trainer.target import Target
from trainer.zlab import draft_shape


def steps(ranks: Ranks) -> list[tuple[float | None, float, bool]]:
    """Loss, gradient norm and whether a step was taken."""
    config = checked(Path("/nowhere"))
    target = Target(config)
    drafter = Drafter(draft_shape(target, (None, None)), torch.Generator().manual_seed(0))
    engine = Engine(Objective(target, drafter, 4, Scoring(4.0)), Optimizer(drafter, config), ranks, config)
    samples = [answered(list(range(40)), 5), answered(list(range(9)), 9)]
    batches = [collate([sample], target.device) for sample in samples]
    told = []
    for index in range(5):
        own = [(2 * index + place, batches[place]) for place in ranks.share(2)]
        step = engine.step(iter(own), 1e-3, 0.0)
        told.append((step.loss, step.grad_norm, step.stepped))
    return told


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = Ranks()
    ranks.join(torch.device("cpu"))
    told = steps(ranks)
    if ranks.is_first:
        Path(sys.argv[1]).write_text(json.dumps(told))
    ranks.leave()

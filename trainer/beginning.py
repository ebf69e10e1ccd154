"""The drafter that a run begins with: fresh, or one that is there already."""

from pathlib import Path

import torch

from trainer import checkpoint, drafts
from trainer.batches import seed_for
from trainer.config import Config
from trainer.model import Drafter
from trainer.target import Target
from trainer.zlab import draft_config, draft_shape, windows


def make_drafter(config: Config, target: Target) -> Drafter:
    """With weights drawn from the seed, or those of `init_from`, which also has the last word on its sizes."""
    shape = draft_shape(target, windows(config))
    if config["init_from"] is None:
        drafter = Drafter(shape, torch.Generator().manual_seed(seed_for(config["seed"], "weights", 0)))
    else:
        source = Path(config["init_from"])
        if not source.exists():
            # A run that has begun has checkpoints of that drafter itself.
            begun, _ = checkpoint.newest_whole(place := Path(config["run_dir"]) / "checkpoints")
            source = place / begun.name if begun else source
        draft = drafts.read(source)
        drafts.check_fits(draft, draft_config(target, shape, config["block_size"]), shape)
        drafter = draft.drafter()
    drafter.recompute = config["activation_checkpointing"]
    return drafter.to(target.device)

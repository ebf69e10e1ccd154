"""A run of the trainer in float64 or float32 that writes every step's loss and gradient norm with all their digits."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import torch

from trainer import config as trainer_config
from trainer.engine import Engine, Step
from trainer.run import run
from trainer.train import Run


def losses(config: dict, dtype: torch.dtype) -> list[tuple[float, float]]:
    told = []
    begin, step = Run.begin, Engine.step

    def begin_in_dtype(self: Run) -> None:
        self._target.model.to(dtype)
        self._drafter.to(dtype)
        begin(self)

    def listening(self: Engine, *rest) -> Step:
        done = step(self, *rest)
        told.append((done.loss, done.grad_norm))
        return done

    with patch.object(Run, "begin", begin_in_dtype), patch.object(Engine, "step", listening):
        assert run(config) == 0
    return told


def main(arguments: Sequence[str]) -> None:
    """A config, where the figures go, and the dtype's name."""
    place, out, dtype = arguments
    config = trainer_config.load(Path(place))
    told = losses(config, getattr(torch, dtype))
    # All processes have the same figures, since they are sums over all.
    Path(out).with_suffix(f".{os.environ['RANK']}").write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])

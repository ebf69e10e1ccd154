"""How gradients become steps: AdamW on everything, or Muon on the matrices and AdamW on the rest."""

from typing import Any

import torch

from trainer.config import Config
from trainer.errors import ConfigError
from trainer.model import Drafter

# What "auto" makes of the learning rate: a step of Muon has the size of its rate, whatever the gradient's.
_MUON_TIMES = 10.0


class Optimizer:
    """Matrices decay, norms and biases do not. The learning rate is set anew before every step."""

    def __init__(self, drafter: Drafter, config: Config) -> None:
        matrices = [p for p in drafter.parameters() if p.ndim == 2]
        others = [p for p in drafter.parameters() if p.ndim != 2]
        lr, decay, betas = config["lr"], config["weight_decay"], (0.9, config["adam_beta2"])
        # Each with how many times `lr` its rate is.
        self._parts: list[tuple[torch.optim.Optimizer, float]] = []
        self._is_muon = config["optimizer"] == "muon"
        groups = [{"params": others, "weight_decay": 0.0}]
        if self._is_muon:
            if not hasattr(torch.optim, "Muon"):
                raise ConfigError(f"optimizer: muon needs torch 2.9 or newer, and this is {torch.__version__}")
            times = _MUON_TIMES if config["lr_muon"] == "auto" else config["lr_muon"] / lr
            self._parts.append((torch.optim.Muon(matrices, lr=lr * times, weight_decay=decay), times))
        else:
            groups.insert(0, {"params": matrices, "weight_decay": decay})
        self._parts.append((torch.optim.AdamW(groups, lr=lr, betas=betas, fused=True), 1.0))

    def zero_grad(self) -> None:
        for part, _ in self._parts:
            part.zero_grad()

    def step(self, lr: float) -> None:
        """One step, AdamW's with `lr` and Muon's with its own multiple of it."""
        for part, times in self._parts:
            for group in part.param_groups:
                group["lr"] = lr * times
            part.step()

    def rates(self, lr: float) -> dict[str, float]:
        """`lr` as the log has it."""
        return {"lr": lr, **({"lr_muon": lr * self._parts[0][1]} if self._is_muon else {})}

    def state(self) -> list[dict[str, Any]]:
        return [part.state_dict() for part, _ in self._parts]

    def load(self, state: list[dict[str, Any]]) -> None:
        """ConfigError if `state` is another optimizer's."""
        if len(state) != len(self._parts):
            names = {1: "adamw", 2: "muon"}
            was, now = names[len(state)], names[len(self._parts)]
            raise ConfigError(
                f"optimizer: the run's checkpoint has {was} and the config says {now}; "
                "resume with the old value, or start a new run"
            )
        for (part, _), saved in zip(self._parts, state, strict=True):
            # What it was told now holds; the state brings what it was told before along with its moments.
            told = [{key: group[key] for key in group if key != "params"} for group in part.param_groups]
            part.load_state_dict(saved)
            for group, options in zip(part.param_groups, told, strict=True):
                group.update(options)

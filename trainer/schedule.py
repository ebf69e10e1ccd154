"""How the learning rate and the noise run over a run: pure functions of the step, so that a resume needs no state."""

import math

from trainer.config import Config


def lr_factor(step: int, total_steps: int, warmup_ratio: float, schedule: str) -> float:
    """Share of the peak learning rate that optimizer step `step`, counted from 0, is made with.

    Linear from 0 over the warm-up; then `cosine` falls to 0 at `total_steps` and `constant` stays at 1.
    """
    warmup = round(total_steps * warmup_ratio)
    if step < warmup:
        return step / warmup
    if schedule == "constant":
        return 1.0
    return half_cosine((step - warmup) / max(1, total_steps - warmup))


def half_cosine(progress: float) -> float:
    """1 at 0, falling to 0 at 1 and after."""
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


def lr(config: Config, step: int, total_steps: int) -> float:
    return float(config["lr"]) * lr_factor(step, total_steps, config["warmup_ratio"], config["lr_schedule"])


def noise_std(config: Config, step: int, total_steps: int) -> float:
    """Standard deviation of the noise of optimizer step `step`, counted from 0."""
    if config["noise.kind"] == "none":
        return 0.0
    factor = {
        "const": 1.0,
        "follow_lr": lr_factor(step, total_steps, config["warmup_ratio"], config["lr_schedule"]),
        "cosine": half_cosine(step / total_steps),
    }[config["noise.schedule"]]
    return float(config["noise.std"]) * factor

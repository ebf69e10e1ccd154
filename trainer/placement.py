"""The target's layers on GPUs of their own (`target_gpus`), for a target that is too large for one.

Embedding, final norm and head stay with the drafter, which borrows them. Layers run one GPU after the other: what
passes between them moves, their weights never do.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config import Config
from trainer.errors import ConfigError


def layer_devices(config: Config, num_processes: int) -> list[torch.device]:
    """Where the layers go; none if they lie where the drafter does. ConfigError if there is no such GPU."""
    numbers = config["target_gpus"] or []
    if numbers and num_processes > 1:
        raise ConfigError(f"target_gpus: is for one process, and this run has {num_processes}; set processes = 1")
    for number in numbers:
        if number >= (seen := torch.cuda.device_count()):
            raise ConfigError(f"target_gpus: {number} is no GPU of this machine: torch sees {seen}, counted from 0")
    return [torch.device("cuda", number) for number in numbers]


def spread(layers: nn.ModuleList, devices: Sequence[torch.device]) -> None:
    """Puts an equal stretch of `layers` on each of `devices`; whatever a layer is given goes there first."""
    for i, layer in enumerate(layers):
        device = devices[i * len(devices) // len(layers)]
        call_at(layer.to(device), device)


def call_at(module: nn.Module, device: torch.device) -> None:
    """From now on `module` is called with all its tensors on `device`."""
    module.register_forward_pre_hook(
        lambda _module, args, kwargs: (moved(args, device), moved(kwargs, device)), with_kwargs=True
    )


def moved(value: Any, device: torch.device) -> Any:
    """`value` with the tensors in it, however deep in tuples, lists and dicts, on `device`."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(moved(item, device) for item in value)
    return value

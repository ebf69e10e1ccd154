"""Which layers of the target the drafter listens to."""

from collections.abc import Sequence

from trainer.config import Config
from trainer.errors import ConfigError


def tapped_layers(config: Config, num_layers: int) -> list[int]:
    """The layers whose output the drafter's fc sees, of a target with `num_layers`."""
    ids = config["target_layer_ids"]
    if ids == "auto":
        ids = spread_layer_ids(num_layers, config["num_draft_layers"])
        if len(set(ids)) < len(ids):
            raise ConfigError(
                f'target_layer_ids: "auto" gives {ids} for {num_layers} layers; give explicit ids, each once'
            )
    ids = checked_layer_ids(ids, num_layers)
    count = len(ids) if config["fc_layers"] == "all" else config["fc_layers"]
    if count > len(ids):
        raise ConfigError(f"fc_layers: {count} is more than the {len(ids)} layers of target_layer_ids {ids}")
    return ids[:count]


def spread_layer_ids(num_layers: int, count: int) -> list[int]:
    """`count` layers, evenly from layer 1 to the third from the end, as z-lab's checkpoints have them."""
    if count == 1:
        return [num_layers // 2]
    first, last = 1, num_layers - 3
    return [round(first + i * (last - first) / (count - 1)) for i in range(count)]


def checked_layer_ids(ids: Sequence[int], num_layers: int) -> list[int]:
    """`ids` as they are; ConfigError if one is no layer of the target or comes twice."""
    for i in ids:
        if not 0 <= i < num_layers:
            raise ConfigError(f"target_layer_ids: {i} is no layer of the target: its layers are 0 to {num_layers - 1}")
    if len(set(ids)) < len(ids):
        raise ConfigError(
            f"target_layer_ids: {list(ids)} names a layer twice; give the layers to listen to, each of 0 to "
            f"{num_layers - 1} at most once"
        )
    return list(ids)

"""The `config.json` of z-lab's drafters: what servers and the public `dflash` class read beside our weights."""

from typing import Any

from trainer.config import Config
from trainer.errors import ConfigError
from trainer.model import DraftShape, Window
from trainer.target import Target


def windows(config: Config) -> tuple[Window, ...]:
    """One a layer of the drafter, as `sliding_layers` and `sliding_window` say."""
    count, chosen = config["num_draft_layers"], config["sliding_layers"]
    if chosen in ("none", "all"):
        chosen = [] if chosen == "none" else range(count)
    for i in chosen:
        if i >= count:
            raise ConfigError(f"sliding_layers: {i} is no layer of the drafter: its layers are 0 to {count - 1}")
    return tuple(config["sliding_window"] if i in chosen else None for i in range(count))


def draft_shape(target: Target, windows: tuple[Window, ...]) -> DraftShape:
    """A drafter built like its target: the embedding and the head it borrows want the same width."""
    config = target.config
    heads = config.num_attention_heads
    return DraftShape(
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_heads=heads,
        num_kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        windows=windows,
        num_taps=len(target.layer_ids),
        rms_norm_eps=config.rms_norm_eps,
        attention_bias=getattr(config, "attention_bias", False),
        initializer_range=config.initializer_range,
    )


def draft_config(target: Target, shape: DraftShape, block_size: int) -> dict[str, Any]:
    """`block_size` stands at both places where readers look for it."""
    config = target.config
    rope = dict(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {})
    theta = rope.pop("rope_theta", None) or config.rope_theta
    window = next((window for window in shape.windows if window is not None), None)
    scaled = rope.get("rope_type", "default") != "default"
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
        "block_size": block_size,
        "dflash_config": {
            "mask_token_id": target.mask_token_id,
            "target_layer_ids": target.layer_ids,
            "block_size": block_size,
            "num_target_layers": target.num_layers,
            "sample_from_anchor": False,
            **({} if window is None else {"use_swa": True, "swa_window_size": window}),
        },
        "num_target_layers": target.num_layers,
        "num_hidden_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": theta,
        "rope_scaling": rope if scaled else None,
        "max_position_embeddings": config.max_position_embeddings,
        "vocab_size": target.vocab_size,
        "attention_bias": shape.attention_bias,
        "attention_dropout": 0.0,
        "layer_types": ["full_attention" if w is None else "sliding_attention" for w in shape.windows],
        "sliding_window": window,
        "use_sliding_window": window is not None,
        "max_window_layers": shape.num_layers,
        "tie_word_embeddings": False,
        "initializer_range": shape.initializer_range,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "dtype": "float32",
        "use_cache": True,
    }

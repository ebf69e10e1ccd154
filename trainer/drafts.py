"""Drafters that lie in a folder, whoever trained them: read in z-lab's format or speculators', written in either.

    z-lab         the drafter alone; layer ids count the target's blocks from 0
    speculators   the drafter with a copy of the target's embedding and head; ids are higher by one, as the target's
                  hidden states are counted from the embedding

A drafter that was read is as z-lab would have it, in float32.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from trainer.errors import ConfigError
from trainer.model import Drafter, DraftShape

# What of a drafter's config is about its layers; the rest says how it stands to its target.
_NOT_LAYERS = ("architectures", "auto_map", "block_size", "dflash_config", "num_target_layers", "draft_vocab_size")
# What the target brings.
_OF_TARGET = ("embed_tokens.weight", "lm_head.weight")
# What a reader may want to know, and what it is where a folder does not say.
_DEFAULTS = {"rms_norm_eps": 1e-6, "attention_bias": False, "initializer_range": 0.02, "rope_theta": 10000.0}
_COUNTS = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "num_hidden_layers",
)  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """`told` is the config as z-lab's `config.json` has it, complete; `weights` are named as there."""

    path: Path
    told: dict[str, Any]
    weights: dict[str, Tensor]

    @property
    def block_size(self) -> int:
        return int(self.told["block_size"])

    @property
    def layer_ids(self) -> list[int]:
        """Layers of the target that it listens to."""
        return list(self.told["dflash_config"]["target_layer_ids"])

    def drafter(self) -> Drafter:
        """ConfigError if the weights are not those of its config."""
        shape = shape_of(self.told)
        if shape.num_heads % shape.num_kv_heads:
            raise ConfigError(f"{self.path}: {shape.num_kv_heads} key heads cannot serve {shape.num_heads} heads alike")
        drafter = Drafter(shape)
        wanted = drafter.state_dict()
        for its, others, words in (
            (wanted, self.weights, "the weights lack"),
            (self.weights, wanted, "there are weights that are no drafter's:"),
        ):
            if names := sorted(its.keys() - others.keys()):
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise ConfigError(f"{self.path}: weights and config.json do not fit ({words} {names[0]}{more})")
        for name, tensor in wanted.items():
            if tensor.shape != self.weights[name].shape:
                sizes = f"{list(self.weights[name].shape)} where config.json says {list(tensor.shape)}"
                raise ConfigError(f"{self.path}: weights and config.json do not fit ({name} is {sizes})")
        drafter.load_state_dict(self.weights)
        return drafter


def read(folder: Path) -> Draft:
    """The drafter in `folder`; ConfigError, naming it, if there is none that can be read."""
    try:
        told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights: dict[str, Tensor] = {}
        for file in sorted(folder.glob("*.safetensors")):
            weights |= load_file(file)
    except (OSError, ValueError) as e:
        raise ConfigError(f"{folder}: holds no drafter that can be read ({e})") from e
    except Exception as e:  # The reader of safetensors has errors of its own.
        raise ConfigError(f"{folder}: a file of weights is damaged ({e})") from e
    weights = {name: tensor.float() for name, tensor in weights.items() if name not in _OF_TARGET}
    if not weights:
        raise ConfigError(f"{folder}: holds no .safetensors file")
    try:
        whole = _as_zlab(told)
    except KeyError as e:
        raise ConfigError(f"{folder}: config.json is not a DFlash drafter's ({e} is missing)") from e
    except (AttributeError, TypeError, ValueError, ZeroDivisionError) as e:
        raise ConfigError(f"{folder}: config.json is not a DFlash drafter's ({e})") from e
    if key := next(_misfits(whole), None):
        found = whole["dflash_config"].get(key, whole.get(key))
        raise ConfigError(f"{folder}: config.json is not a DFlash drafter's ({key} is {json.dumps(found)})")
    _check_layout(folder, whole)
    return Draft(folder, whole, weights)


def check_target(draft: Draft, now: dict[str, Any], key: str) -> None:
    """ConfigError if `draft`, named by the config's `key`, was made for another target than the draft config `now`."""
    its = draft.told
    pairs = [(name, its[name], now[name]) for name in ("hidden_size", "head_dim", "vocab_size", "rope_theta")]
    if its["num_target_layers"] is not None:
        pairs.append(("num_target_layers", its["num_target_layers"], now["num_target_layers"]))
    _compare(draft, pairs, key, "the target")


def check_fits(draft: Draft, now: dict[str, Any], shape: DraftShape) -> None:
    """ConfigError if `draft` cannot go on as a drafter of this shape, and of this run's draft config."""
    check_target(draft, now, "init_from")
    own, its = shape_of(draft.told), draft.told["dflash_config"]
    pairs = [(name, its[name], now["dflash_config"][name]) for name in ("mask_token_id", "target_layer_ids")]
    pairs += [("num_draft_layers", own.num_layers, shape.num_layers), ("sliding windows", own.windows, shape.windows)]
    _compare(draft, pairs, "init_from", "this run")


def _compare(draft: Draft, pairs: list[tuple[str, Any, Any]], key: str, whose: str) -> None:
    for name, theirs, ours in pairs:
        if theirs != ours:
            raise ConfigError(f"{key}: the drafter in {draft.path} has {name} {theirs} and {whose} has {ours}")


def shape_of(told: dict[str, Any]) -> DraftShape:
    """The sizes that a z-lab config speaks of."""
    window = told["sliding_window"]
    return DraftShape(
        hidden_size=told["hidden_size"],
        intermediate_size=told["intermediate_size"],
        num_heads=told["num_attention_heads"],
        num_kv_heads=told["num_key_value_heads"],
        head_dim=told["head_dim"],
        windows=tuple(window if kind == "sliding_attention" else None for kind in told["layer_types"]),
        num_taps=len(told["dflash_config"]["target_layer_ids"]),
        rms_norm_eps=told["rms_norm_eps"],
        attention_bias=told["attention_bias"],
        initializer_range=told["initializer_range"],
    )


def _as_zlab(told: dict[str, Any]) -> dict[str, Any]:
    """Either format's config, with everything at z-lab's places and nothing left to be guessed."""
    if told.get("speculators_model_type") == "dflash":
        dflash = {
            "mask_token_id": told["mask_token_id"],
            "target_layer_ids": [i - 1 for i in told["aux_hidden_state_layer_ids"]],
            "block_size": told["block_size"],
            "sample_from_anchor": told.get("sample_from_anchor", False),
            "causal": not told.get("sliding_window_non_causal", False),
        }
        layers = told["transformer_layer_config"]
        told = {
            "draft_vocab_size": told.get("draft_vocab_size") or layers["vocab_size"],
            **layers,
            "dflash_config": dflash,
        }
    dflash = dict(told["dflash_config"])
    rope = told.get("rope_parameters") or told.get("rope_scaling") or {}
    whole = {**_DEFAULTS, **({"rope_theta": rope["rope_theta"]} if "rope_theta" in rope else {}), **told}
    dflash["block_size"] = whole["block_size"] = dflash.get("block_size") or told["block_size"]
    whole.setdefault("num_target_layers", dflash.get("num_target_layers"))
    whole.setdefault("head_dim", told["hidden_size"] // told["num_attention_heads"])
    whole["num_key_value_heads"] = told.get("num_key_value_heads") or told["num_attention_heads"]
    whole["layer_types"] = told.get("layer_types") or ["full_attention"] * told["num_hidden_layers"]
    whole["sliding_window"] = told.get("sliding_window") or dflash.get("swa_window_size")
    # KeyError, to be told.
    whole["intermediate_size"], whole["vocab_size"], dflash["mask_token_id"], dflash["target_layer_ids"]
    return {**whole, "dflash_config": dflash}


def _misfits(told: dict[str, Any]) -> Iterator[str]:
    """Keys of a complete config that have what no drafter can be built of."""
    dflash, layers, ids = told["dflash_config"], told["layer_types"], told["dflash_config"]["target_layer_ids"]
    yield from (key for key in _COUNTS if not _is_count(told[key]))
    for key in ("rms_norm_eps", "initializer_range", "rope_theta"):
        if not isinstance(told[key], int | float) or told[key] <= 0:
            yield key
    if not isinstance(told["attention_bias"], bool):
        yield "attention_bias"
    kinds = ("full_attention", "sliding_attention")
    if not isinstance(layers, list) or len(layers) != told["num_hidden_layers"] or not all(k in kinds for k in layers):
        yield "layer_types"
    if "sliding_attention" in layers and not _is_count(told["sliding_window"]):
        yield "sliding_window"
    if not _is_count(told["block_size"], 2):
        yield "block_size"
    if not _is_count(dflash["mask_token_id"], 0) or dflash["mask_token_id"] >= told["vocab_size"]:
        yield "mask_token_id"
    if not isinstance(ids, list) or not ids or not all(_is_count(i, 0) for i in ids) or len(set(ids)) < len(ids):
        yield "target_layer_ids"


def _is_count(value: Any, least: int = 1) -> bool:
    return type(value) is int and value >= least


def _check_layout(folder: Path, told: dict[str, Any]) -> None:
    """ConfigError if the drafter drafts in another way than ours: it would load, and be right by chance only."""
    dflash = told["dflash_config"]
    if dflash.get("sample_from_anchor"):
        raise ConfigError(
            f"{folder}: config.json says sample_from_anchor = true, and here the slot of the anchor predicts nothing "
            "(false)"
        )
    if dflash.get("causal") is False and "sliding_attention" in told["layer_types"]:
        raise ConfigError(f"{folder}: its sliding layers see what comes after a slot, and here they look back only")
    if told.get("draft_vocab_size") not in (None, told["vocab_size"]):
        raise ConfigError(
            f"{folder}: it drafts {told['draft_vocab_size']} tokens of {told['vocab_size']}, and a vocabulary of its "
            "own is not supported"
        )


def as_speculators(draft: Draft, target: Path, architectures: list[str]) -> dict[str, Any]:
    """The config of `draft` as speculators has it; `target` is where its verifier lies."""
    told = draft.told
    layers = {key: value for key, value in told.items() if key not in _NOT_LAYERS}
    return {
        "architectures": ["DFlashDraftModel"],
        "speculators_model_type": "dflash",
        "transformer_layer_config": layers,
        "aux_hidden_state_layer_ids": [i + 1 for i in draft.layer_ids],
        "block_size": draft.block_size,
        "mask_token_id": told["dflash_config"]["mask_token_id"],
        "draft_vocab_size": told["vocab_size"],
        "sample_from_anchor": False,
        # Layers that slide look back only, inside their block too.
        "sliding_window_non_causal": False,
        "tie_word_embeddings": False,
        "dtype": "float32",
        "speculators_config": {
            "algorithm": "dflash",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": draft.block_size - 1}],
            "verifier": {"name_or_path": str(target), "architectures": architectures},
        },
    }


def in_dtype(weights: dict[str, Tensor], dtype: str) -> dict[str, Tensor]:
    return {name: tensor.to(getattr(torch, dtype)).contiguous() for name, tensor in weights.items()}

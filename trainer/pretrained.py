"""What lies in the target's folder, in Hugging Face format: its sizes, its tokenizer and its weights.

Owns all that is read from there, and what is said where it does not fit together (ConfigError). Never the network,
never code out of a model's folder. How the target is run is for `target`.
"""

import hashlib
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from trainer.config import Config
from trainer.errors import ConfigError, is_out_of_memory

_TRUSTED: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_TINY = Path(__file__).with_name("tiny_target")
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")

# What of it matters becomes a sentence of ours; bars and reports would fill the run's output.
logging.disable_progress_bar()
logging.set_verbosity_error()


def folder(config: Config) -> Path:
    """Where the target lies; "tiny" means the bundled one."""
    return _TINY if config["target"] == "tiny" else Path(config["target"])


def fingerprint(path: Path) -> str:
    """Of the target in `path`: its config, and the names and sizes of its weights."""
    digest = hashlib.sha256((path / "config.json").read_bytes())
    for file in sorted(path.glob("*.safetensors")):
        digest.update(f"{file.name} {file.stat().st_size}".encode())
    return digest.hexdigest()


def load_config(path: Path) -> Any:
    if not (path / "config.json").is_file():
        raise ConfigError(f"target: {path} holds no config.json; give the folder of a Hugging Face model")
    try:
        return AutoConfig.from_pretrained(path, **_TRUSTED)
    except (OSError, ValueError, TypeError) as e:
        raise _unreadable(path, e) from e


def load_tokenizer(path: Path) -> Any:
    load_config(path)
    if not any(file for pattern in _TOKENIZER_FILES for file in path.glob(pattern)):
        raise ConfigError(f"target: {path} holds no tokenizer; copy that of the model there")
    try:
        return AutoTokenizer.from_pretrained(path, **_TRUSTED)
    except Exception as e:  # Each kind of tokenizer has errors of its own.
        raise _unreadable(path, e) from e


def num_rows(path: Path) -> int:
    """Rows of the embedding: tokens are 0 to one less."""
    return int(load_config(path).get_text_config().vocab_size)


def load_model(path: Path, dtype: str, *, with_layers: bool = True) -> Any:
    """The frozen model, on the CPU; without layers it is embedding, final norm and head alone."""
    config = load_config(path)
    if not with_layers:
        config.get_text_config().num_hidden_layers = 0
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            path,
            config=config,
            dtype=getattr(torch, dtype),
            attn_implementation="sdpa",
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # They are told below, by name.
            **_TRUSTED,
        )
    except Exception as e:  # Weights in safetensors have errors of their own.
        if is_out_of_memory(e):
            raise
        raise _unreadable(path, e) from e
    _check_kind(path, model)
    for name, its, wanted in sorted(told["mismatched_keys"]):
        sizes = f"{tuple(its)} where config.json says {tuple(wanted)}"
        raise ConfigError(f"target: the weights in {path} are not those of its config.json ({name} is {sizes})")
    # transformers would fill them with random numbers.
    if missing := sorted(told["missing_keys"]):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ConfigError(f"target: the weights in {path} lack {missing[0]}{more}")
    return model.eval().requires_grad_(False)


def _check_kind(path: Path, model: Any) -> None:
    for part in ("layers", "norm", "rotary_emb"):
        if not hasattr(model.get_decoder(), part):
            name = type(model).__name__
            raise ConfigError(f"target: {name} has no decoder.{part}; models built like Llama or Qwen3 have")
    if "sliding_attention" in (getattr(model.config.get_text_config(), "layer_types", None) or ()):
        raise ConfigError(f"target: {path} has sliding-window layers, which are not supported yet")


def _unreadable(path: Path, error: Exception) -> ConfigError:
    said = str(error).strip().splitlines() or [type(error).__name__]
    return ConfigError(f"target: {path} cannot be loaded ({said[0]})")

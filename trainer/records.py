"""What the start and train records of the log say."""

import hashlib
import json
import math
import os
import platform
from pathlib import Path
from typing import Any

import safetensors
import torch
import transformers

from trainer.batches import Batch
from trainer.config import Config, nest
from trainer.loss import LOSS_NORM
from trainer.metrics import Tally
from trainer.target import Target

_SCHEMA = 1
_STATM = Path("/proc/self/statm")


def start_record(config: Config, target: Target, data_hash: str, resumed_from_step: int | None) -> dict[str, Any]:
    """What was run, with what. `config` has every "auto" resolved; its hash leaves out what launch sets."""
    recipe = {key: value for key, value in config.items() if key not in ("run_dir", "run_id")}
    record = {
        "run_id": config["run_id"],
        "schema": _SCHEMA,
        "config": nest(config),
        "config_hash": hashlib.sha256(json.dumps(nest(recipe), sort_keys=True).encode()).hexdigest(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "safetensors": safetensors.__version__,
        },
        "target": {
            "path": str(target.path),
            "model_type": target.config.model_type,
            "num_layers": target.num_layers,
            "hidden_size": target.config.hidden_size,
            "vocab_size": target.vocab_size,
            "fingerprint": target.fingerprint(),
        },
        "data_hash": data_hash,
        "loss_norm": LOSS_NORM,
        "gamma": config["gamma"],
        "kl_weight": config["loss.kl"],
    }
    return record if resumed_from_step is None else {**record, "resumed_from_step": resumed_from_step}


def batch_fields(batch: Batch, counts: Tally) -> dict[str, Any]:
    """What a step was made of."""
    sequences, longest = batch.tokens.shape
    tokens = int(batch.lengths.sum())
    return {
        "avg_batch_size": sequences,
        "avg_seq_len": rounded(tokens / sequences),
        "padding_eff": rounded(tokens / (sequences * longest)),
        "supervised_share": rounded(int(batch.response.sum()) / tokens),
        "tokens": tokens,
        "draft_tokens": sum(counts.slots),
    }


def score_fields(counts: Tally) -> dict[str, Any]:
    """What the drafter got right in a step."""
    scalars = {key: rounded(value) for key, value in counts.scalars().items()}
    return {key: scalars[key] for key in ("accuracy", "accept_len", "ddtree_streak8")}


def sparse_fields(counts: Tally) -> dict[str, Any]:
    """What is too long, or moves too slowly, for every record."""
    losses = counts.losses()
    return {
        "loss_ce": rounded(losses["loss_ce"]),
        **({"loss_kl": rounded(losses["loss_kl"])} if counts.kl else {}),
        "n_blocks": int(counts.blocks),
        "draft_top1_prob": rounded(counts.scalars()["draft_top1_prob"]),
        "position_acc": [rounded(value) for value in counts.position_acc()],
        "rss_gb": rss_gb(),
    }


def rss_gb() -> float | None:
    """Memory that the process holds now, in GiB, where the system tells."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, ValueError):
        return None
    return rounded(pages * os.sysconf("SC_PAGE_SIZE") / 2**30)


def rounded(value: float | None) -> float | None:
    """Five digits: the log stays near 400 bytes a step."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else value

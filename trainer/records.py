"""What the start and train records of the log say. Figures of a train record are sums over its window, divided last."""

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

from trainer.config import Config, nest
from trainer.engine import PARTS, Step
from trainer.loss import LOSS_NORM
from trainer.metrics import Tally
from trainer.target import Target

_SCHEMA = 1
_STATM = Path("/proc/self/statm")


def start_record(
    config: Config, target: Target, data_hash: str, world_size: int, resumed_from_step: int | None
) -> dict[str, Any]:
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
        "world_size": world_size,
    }
    return record if resumed_from_step is None else {**record, "resumed_from_step": resumed_from_step}


class Window:
    """The steps since the last train record, as sums."""

    def __init__(self, block_size: int, device: torch.device) -> None:
        self._counts = Tally.empty(block_size, device)
        self._made_of = dict.fromkeys(PARTS, 0)
        self._seconds: dict[str, float] = {}
        self._num_steps = 0
        self._norms: list[float] = []

    def add(self, step: Step) -> None:
        self._counts += step.counts
        self._num_steps += 1
        if step.loss is not None:
            # Without a loss there is no gradient, which is another thing than one of 0.
            self._norms.append(step.grad_norm)
        for key, value in step.made_of.items():
            self._made_of[key] += value
        for name, spent in step.seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + spent

    @property
    def is_empty(self) -> bool:
        return not self._num_steps

    def loss(self) -> float | None:
        """As optimised: the weighted sum over the sum of the weights."""
        return self._counts.losses()["loss"]

    def fields(self, limit: float, *, sparse: bool) -> dict[str, Any]:
        """Figures of the window for the log; `sparse` adds those too long, or too slow, for every record."""
        steps, made_of, counts = self._num_steps, self._made_of, self._counts
        wall = self._seconds["step_time_s"]
        scores = {key: rounded(value) for key, value in counts.scalars().items()}
        tokens = made_of["tokens"]
        return {
            "loss": counts.losses()["loss"],
            **{key: scores[key] for key in ("accuracy", "accept_len", "ddtree_streak8")},
            "grad_norm": _share(sum(self._norms), len(self._norms)),
            "grad_clipped": any(norm > limit for norm in self._norms),
            "avg_batch_size": rounded(made_of["sequences"] / steps),
            "avg_seq_len": _share(tokens, made_of["sequences"]),
            "padding_eff": _share(tokens, made_of["padded"]),
            "supervised_share": _share(made_of["response"], tokens),
            "tokens": tokens,
            "draft_tokens": sum(counts.slots),
            "tok_per_sec": rounded(tokens / wall),
            "step_time_s": rounded(wall / steps),
            "target_fwd_s": rounded(self._seconds.get("target_fwd_s", 0.0) / steps),
            **(self._sparse(steps) if sparse else {}),
        }

    def _sparse(self, steps: int) -> dict[str, Any]:
        counts = self._counts
        losses = counts.losses()
        device = counts.sums.device
        seconds = {key: self._seconds.get(key, 0.0) / steps for key in ("data_wait_s", "fwd_s", "bwd_s", "opt_s")}
        return {
            "loss_ce": rounded(losses["loss_ce"]),
            **({"loss_kl": rounded(losses["loss_kl"])} if counts.kl else {}),
            "n_blocks": int(counts.blocks),
            "draft_top1_prob": rounded(counts.scalars()["draft_top1_prob"]),
            "position_acc": [rounded(value) for value in counts.position_acc()],
            **{key: rounded(value) for key, value in seconds.items()},
            "rss_gb": rss_gb(),
            **(gpu_memory(device) if device.type == "cuda" else {}),
        }


class ByLength:
    """Losses of short and of long sequences since they were last told: a step may be of one length alone."""

    def __init__(self) -> None:
        self._sums: dict[int, list[float]] = {}

    def add(self, step: Step) -> None:
        for length, sums in step.by_length.items():
            # What is not finite would spoil the others' until it is told.
            if all(map(math.isfinite, sums)):
                self._sums[length] = [a + b for a, b in zip(self._sums.get(length, [0.0, 0.0]), sums, strict=True)]

    def take(self) -> dict[str, Any]:
        """The field of the log, and begins anew: the loss of each bucket, by the length of its longest sequence."""
        told = {str(length): rounded(loss / weight) for length, (loss, weight) in self._sums.items() if weight}
        self._sums = {}
        return {"bucket_loss": told} if told else {}


def _share(part: float, whole: float) -> float | None:
    """None where every batch was skipped."""
    return rounded(part / whole) if whole else None


def gpu_memory(device: torch.device) -> dict[str, float | None]:
    """GiB that tensors take now, and took at most."""
    now, most = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    return {"mem_alloc_gb": rounded(now / 2**30), "mem_peak_gb": rounded(most / 2**30)}


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

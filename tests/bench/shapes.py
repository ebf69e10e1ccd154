"""What the trainers' steps are measured at, and how a process of one of them takes its turns.

Imported in the peers' environment too: torch, transformers, and nothing else that is not ours.
"""

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from tests.trainer.trainer_setup import ROOT, random_target

_TINY = ROOT / "trainer" / "tiny_target"

# What all of them train with.
LR, CLIP = 6e-4, 1.0
_LOOP = 37
_BATCHES = 16
# What a drafter has of its target.
_COPIED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "rms_norm_eps",
)


@dataclass(frozen=True)
class Shape:
    """A target, a drafter for it, and the batches they see. `target` are sizes of a random Qwen3; none means the
    bundled one."""

    sequences: int
    tokens: int
    prompt: int
    num_anchors: int
    block_size: int
    gamma: float
    layer_ids: list[int]
    mask_token_id: int
    target: dict[str, Any] = field(default_factory=dict)
    num_layers: int = 2

    @property
    def batch_tokens(self) -> int:
        return self.sequences * self.tokens

    def target_folder(self) -> Path:
        """The same weights in every process."""
        if not self.target:
            return _TINY
        folder = Path(tempfile.mkdtemp(prefix="dflash-bench-target-"))
        return random_target(folder, AutoTokenizer.from_pretrained(_TINY), initializer_range=0.02, **self.target)

    def batches(self) -> list[tuple[Tensor, Tensor]]:
        """Tokens and response masks [sequences, tokens]: loops of random tokens, the same in every process."""
        rng = torch.Generator().manual_seed(1)
        response = torch.arange(self.tokens).expand(self.sequences, -1) >= self.prompt
        found = []
        for _ in range(_BATCHES):
            loops = torch.randint(0, self.mask_token_id, (self.sequences, _LOOP), generator=rng)
            found.append((loops.repeat(1, -(-self.tokens // _LOOP))[:, : self.tokens].contiguous(), response))
        return found


SHAPES = {
    # facts of the peers' own measurements: one sequence, a vocabulary of 2048, 2.10M parameters, 443,264 to train.
    "trainer_step": Shape(
        sequences=1,
        tokens=512,
        prompt=0,
        num_anchors=64,
        block_size=16,
        gamma=7.0,
        layer_ids=[1, 3, 5],
        mask_token_id=2047,
        target={
            "vocab_size": 2048,
            "hidden_size": 128,
            "intermediate_size": 384,
            "num_hidden_layers": 8,
            "head_dim": 32,
            "max_position_embeddings": 1024,
        },
    ),
    # The demo's.
    "trainer_step_demo": Shape(
        sequences=8,
        tokens=256,
        prompt=48,
        num_anchors=32,
        block_size=8,
        gamma=4.0,
        layer_ids=[1, 3],
        mask_token_id=259,
    ),
}


class Target:
    """The frozen model as the peers' own code runs it: every layer, and all hidden states."""

    def __init__(self, shape: Shape) -> None:
        self.folder = shape.target_folder()
        self.model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
        self.model.requires_grad_(False)
        self.config = self.model.config
        self._layer_ids = shape.layer_ids
        self._last: list[Tensor] = []
        self.model.model.norm.register_forward_pre_hook(lambda _norm, inputs: self._last.append(inputs[0]))

    @torch.no_grad()
    def features(self, tokens: Tensor, **apart: Tensor) -> tuple[Tensor, Tensor]:
        """The tapped layers side by side, and the last one before the final norm."""
        self._last.clear()
        found = self.model.model(input_ids=tokens, output_hidden_states=True, use_cache=False, **apart)
        return torch.cat([found.hidden_states[i + 1] for i in self._layer_ids], dim=-1), self._last[0]


def draft_config(shape: Shape, target: Any) -> dict[str, Any]:
    """A drafter sized like its target, as the peers' configs have it."""
    copied = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
    )
    return {
        **{key: getattr(target, key) for key in (*copied, "max_position_embeddings", "rms_norm_eps")},
        "rope_parameters": target.rope_parameters,
        "num_hidden_layers": shape.num_layers,
        "layer_types": ["full_attention"] * shape.num_layers,
        "tie_word_embeddings": False,
        "block_size": shape.block_size,
        "num_target_layers": target.num_hidden_layers,
        "dflash_config": {"mask_token_id": shape.mask_token_id, "target_layer_ids": shape.layer_ids},
    }


class Clock:
    """Where the seconds of a step go."""

    def __init__(self) -> None:
        self.target_s = 0.0

    @contextmanager
    def target(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.target_s += time.perf_counter() - began


def serve(make: Callable[[Shape], Callable[[int, Clock], float]]) -> None:
    """Takes turns: for every line of stdin, so many steps. Words: a shape, how many threads.

    `make` builds all that lives as long as a run, and returns its step. An answer holds the seconds of each step, those
    of its target and those of all threads, the loss of the last, the MiB over what stood there before the first, and
    the milliseconds that a step's products alone would take here and now.
    """
    torch.set_num_threads(int(sys.argv[2]))
    logging.disable_progress_bar()
    shape = SHAPES[sys.argv[1]]
    step, products = make(shape), num_products(shape, shape.target_folder())
    Path("/proc/self/clear_refs").write_text("5")
    before = _mib("VmRSS")
    print("ready", flush=True)
    index = 0
    for line in sys.stdin:
        step_s, target_s, cpu_s = [], [], []
        for _ in range(int(line)):
            clock, began, cpu_began = Clock(), time.perf_counter(), time.process_time()
            loss = step(index, clock)
            step_s.append(time.perf_counter() - began)
            cpu_s.append(time.process_time() - cpu_began)
            target_s.append(clock.target_s)
            index += 1
        answer = {"step_s": step_s, "target_s": target_s, "cpu_s": cpu_s, "loss": loss, "mib": _mib("VmHWM") - before}
        print(json.dumps({**answer, "floor_ms": products / _products_a_ms()}), flush=True)


def num_products(shape: Shape, target: Path) -> float:
    """Multiplications with an addition that a step cannot do without: the target up to its last tap, then the drafter,
    three times (forward, and back to weights and to inputs), where nothing is computed that no slot sees."""
    sizes = AutoConfig.from_pretrained(target)
    hidden, queries = sizes.hidden_size, sizes.num_attention_heads * sizes.head_dim
    keys = 2 * hidden * sizes.num_key_value_heads * sizes.head_dim
    layer = 2 * hidden * queries + keys + 3 * hidden * sizes.intermediate_size
    slots = shape.sequences * shape.num_anchors * shape.block_size
    features = (shape.layer_ids[-1] + 1) * shape.batch_tokens * (layer + queries * shape.tokens)
    seen = (shape.prompt + shape.tokens) / 2 + shape.block_size
    layers = shape.num_layers * (slots * (layer + 2 * queries * seen) + shape.batch_tokens * keys)
    fc = shape.batch_tokens * len(shape.layer_ids) * hidden**2
    # The features and the head are not trained.
    head = slots * (1 - 1 / shape.block_size) * hidden * sizes.vocab_size
    return float(features + 3 * layers + 2 * fc + 2 * head)


def _products_a_ms() -> float:
    """What one large matrix product does here, at its best."""
    size, best = 1024, float("inf")
    a, b = torch.randn(2, size, size)
    for _ in range(3):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return size**3 / best / 1000


def _mib(key: str) -> float:
    """VmRSS, what this process holds now; VmHWM, the most since that was last cleared."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024

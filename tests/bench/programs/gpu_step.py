"""What a step takes on a GPU: tokens a second, share of the GPU's peak, memory; flex against SDPA under a mask.

    PYTHONPATH=. python tests/bench/programs/gpu_step.py [--size 4b|8b] [--seconds 60] [--sequences 4]

The target is a Qwen3 of random weights, made on the GPU and written to the temporary folder (8 or 16 GB); the drafter
and its batches are those of the recipe `qwen3-8b`. `--device cpu --tiny` runs the same in seconds, to see that it runs.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from tests.bench.ours import stepper
from tests.bench.shapes import Shape, num_products
from tests.trainer.trainer_setup import ROOT
from trainer.engine import Step

_HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 36}
_VOCABULARY = {"vocab_size": 151936, "max_position_embeddings": 40960, "rope_parameters": {"rope_theta": 1e6}}
_4B = Shape(
    sequences=4,
    tokens=3072,
    prompt=512,
    num_anchors=512,
    block_size=16,
    gamma=7.0,
    layer_ids=[1, 9, 17, 25, 33],
    mask_token_id=151669,
    target={"hidden_size": 2560, "intermediate_size": 9728, **_HEADS, **_VOCABULARY},
    num_layers=5,
)
SIZES = {
    "4b": _4B,
    "8b": replace(_4B, target={**_4B.target, "hidden_size": 4096, "intermediate_size": 12288}),
    "tiny": Shape(
        sequences=2,
        tokens=48,
        prompt=8,
        num_anchors=4,
        block_size=4,
        gamma=4.0,
        layer_ids=[0, 2],
        mask_token_id=259,
        target={
            "vocab_size": 272,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 5,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
        },
    ),
}
# Dense bfloat16 TFLOP/s, as their makers give them.
_PEAKS = {"B200": 2250.0, "H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0, "RTX 4090": 165.0}
_WARM_STEPS = 3


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=("4b", "8b"), default="4b")
    parser.add_argument("--tiny", action="store_true", help="a target of nothing, for a CPU")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each way to attend")
    parser.add_argument("--sequences", type=int, help="of 3072 tokens in a batch")
    parser.add_argument("--peak-tflops", type=float, help="of the GPU in bfloat16, where it is none that is known here")
    asked = parser.parse_args(arguments)
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no CUDA GPU; --device cpu --tiny shows that the rest runs")
    shape = SIZES["tiny" if asked.tiny else asked.size]
    shape = replace(shape, sequences=asked.sequences or shape.sequences)
    peak = asked.peak_tflops or next((flops for name, flops in _PEAKS.items() if name in _name(asked.device)), None)
    print(f"{_name(asked.device)}, torch {torch.__version__}, {shape.sequences} x {shape.tokens} tokens", flush=True)
    found = []
    with tempfile.TemporaryDirectory(prefix="dflash-gpu-") as folder:
        target = write_target(shape, Path(folder), asked.device)
        flop = 2 * num_products(shape, target)
        for kind in ("flex", "dense"):
            take = stepper(shape, target, attention=kind, device=asked.device)
            found.append(measured(kind, take, asked.seconds, asked.device, flop, peak))
            print(json.dumps(found[-1]), flush=True)
            del take
    return found


def write_target(shape: Shape, folder: Path, device: str) -> Path:
    """As a user's own target would lie there."""
    torch.manual_seed(0)
    config = Qwen3Config(**shape.target, tie_word_embeddings=False, dtype=torch.bfloat16)
    with torch.device(device):
        model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(ROOT / "trainer" / "tiny_target").save_pretrained(folder)
    return folder


def measured(
    kind: str, take: Callable[[], Step], seconds: float, device: str, flop: float, peak: float | None
) -> dict[str, Any]:
    """Steps for so many seconds, after a few that compile and warm up."""
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    steps = [take() for _ in range(_WARM_STEPS)]
    notes = [note for step in steps for note in [*step.notes, *step.spilled]]
    began, timed = time.monotonic(), []
    while not timed or time.monotonic() - began < seconds:
        timed.append(take())
        notes += [*timed[-1].notes, *timed[-1].spilled]
    step_s = statistics.median(step.seconds["step_time_s"] for step in timed)
    rate = flop / step_s / 1e12
    parts = {key: statistics.median(step.seconds[key] for step in timed) for key in ("target_fwd_s", "fwd_s", "bwd_s")}
    return {
        "attention": kind,
        "steps": len(timed),
        "step_ms": round(step_s * 1000, 2),
        "tok_per_sec": round(timed[-1].made_of["tokens"] / step_s, 1),
        "share": {key: round(part / step_s, 3) for key, part in parts.items()},
        "tflops": round(rate, 4),
        "mfu": None if peak is None else round(rate / peak, 4),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if device == "cuda" else None,
        "loss": timed[-1].loss,
        "notes": sorted(set(notes)),
    }


def _name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


if __name__ == "__main__":
    main()

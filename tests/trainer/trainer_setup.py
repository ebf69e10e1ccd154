"""What the trainer's tests share: small configs and targets, two processes, independent readings of the log."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tests.preloaded import Preloaded
from trainer import config as trainer_config

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases")


def case(name: str) -> Any:
    return json.loads((CASES / name).read_text())


def nested(run_dir: Path, **changes: Any) -> dict[str, Any]:
    """A run of seconds on the bundled target; `changes` are dotted keys with _ for the dot's place given as a dict."""
    base: dict[str, Any] = {
        "run_dir": str(run_dir),
        "target": "tiny",
        "data": {"num_train": 12, "num_eval": 2},
        "num_draft_layers": 2,
        "block_size": 4,
        "num_anchors": 4,
        "total_steps": 6,
        "batch_tokens": 1024,
        "eval_every": 0,
        "eval": {"ddtree": "never"},
        "save_every": 100,
        "threads": 1,
        "device": "cpu",
    }
    return {**base, **changes}


def checked(run_dir: Path, **changes: Any) -> dict[str, Any]:
    return trainer_config.check(nested(run_dir, **changes))


@cache
def _preloaded() -> Preloaded:
    return Preloaded("trainer.run", "transformers.models.qwen3.modeling_qwen3")


def by_two(module: str, *words: str) -> None:
    """`module` to its end as two processes that meet, as torchrun or our launcher would start them."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        meet = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(finder.getsockname()[1])}
    ranks = [{**os.environ, **meet, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda env: _preloaded().run(module, *words, env=env), ranks))
    assert [one.returncode for one in done] == [0, 0], done


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def records(run_dir: Path) -> list[dict[str, Any]]:
    """The log, read as strict JSON."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not strict JSON")

    lines = (run_dir / "train_log.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def events(run_dir: Path, event: str) -> list[dict[str, Any]]:
    return [record for record in records(run_dir) if record["event"] == event]


def random_target(folder: Path, tokenizer: PreTrainedTokenizerFast, *, seed: int = 0, **changes: Any) -> Path:
    """A Qwen3 of random float32 weights, saved as a user's own target would be."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "vocab_size": 272,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "initializer_range": 0.5,
        "pad_token_id": 256,
        "bos_token_id": 257,
        "eos_token_id": 258,
        "tie_word_embeddings": False,
    }
    model = Qwen3ForCausalLM(Qwen3Config(**{**sizes, **changes}))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

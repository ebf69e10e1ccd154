"""The bundled recipes hold the numbers of their sources, and those for the bundled target run."""

import tomllib

import pytest

from trainer.config import check
from trainer.loss import auto_gamma
from trainer.run import run
from trainer.taps import spread_layer_ids

from .trainer_setup import ROOT, events

RECIPES = ROOT / "trainer" / "recipes"


def recipe(name: str, **changes) -> dict:
    nested = tomllib.loads((RECIPES / f"{name}.toml").read_text())
    return check({**nested, "run_dir": "/somewhere", **changes})


def test_the_recipes_are_those_that_are_named():
    assert sorted(p.stem for p in RECIPES.glob("*.toml")) == [
        "evaluate", "paper", "prepare", "qwen3-8b", "story-v4", "story-v5", "tiny",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["paper", "qwen3-8b"])
def test_the_papers_numbers(name):
    config = recipe(name)
    want = {
        "num_draft_layers": 5, "block_size": 16, "num_anchors": 512, "lr": 6e-4, "lr_schedule": "cosine",
        "warmup_ratio": 0.04, "max_grad_norm": 1.0, "epochs": 6, "data.max_seq_len": 3072, "data.max_new_tokens": 2048,
        "loss.ce": 1.0, "loss.kl": 0.0, "position_weight": "decay", "teacher": "tokens", "noise.kind": "none",
        "fc_layers": "all", "optimizer": "adamw",
    }  # fmt: skip
    assert {key: config[key] for key in want} == want
    assert config["gamma"] in ("auto", 7.0) and auto_gamma(16) == 7.0


def test_qwen3_8b_has_the_published_layers_and_mask():
    config = recipe("qwen3-8b")
    assert config["target_layer_ids"] == spread_layer_ids(36, 5)
    assert config["mask_token_id"] == 151669


def test_the_story_switches_its_faults_and_nothing_else():
    faulty, repaired = recipe("story-v4"), recipe("story-v5")
    changed = {key: (faulty[key], repaired[key]) for key in faulty if faulty[key] != repaired[key]}
    assert changed == {
        "fc_layers": ("all", 2),
        "position_weight": ("streak", "decay"),
        "gamma": (10.0, 7.0),
        "loss.ce": (0.3, 1.0),
        "loss.kl": (0.7, 0.0),
        "kl_temperature": (2.0, 1.0),
        "noise.on": ("all", "fc_input"),
    }
    assert (faulty["noise.std"], faulty["noise.schedule"], faulty["block_size"]) == (0.1, "follow_lr", 16)


@pytest.mark.parametrize("name", ["story-v4", "story-v5"])
def test_the_story_runs_on_the_bundled_target(tmp_path, name):
    config = {
        **recipe(name),
        "run_dir": str(tmp_path),
        "total_steps": 2,
        "data.num_train": 8,
        "data.num_eval": 1,
        "batch_tokens": 1024,
        "data.max_new_tokens": 60,
        "log_arrays_every": 1,
        "device": "cpu",
        "threads": 1,
        "warmup_ratio": 0.0,
    }
    assert run(config) == 0
    steps = events(tmp_path, "train")
    assert [r["noise_std"] for r in steps] == [0.1, 0.05]
    start = events(tmp_path, "start")[0]
    assert (start["gamma"], start["kl_weight"]) == ((10.0, 0.7) if name == "story-v4" else (7.0, 0.0))
    for r in steps:
        assert not r["grad_clipped"]
        assert ("loss_kl" in r) == (name == "story-v4")

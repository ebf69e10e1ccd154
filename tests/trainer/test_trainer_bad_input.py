"""What a person can get wrong: one clear line, an `end` record with the reason, and what was there before stays."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from trainer.run import run

from .trainer_setup import ROOT, checked, events, records, write_rows

TINY = str(ROOT / "trainer" / "tiny_target")
ROWS = [{"prompt": "ab", "response": "c" * length} for length in range(20, 30)]


def spoil_config(folder: Path, **changes) -> None:
    place = folder / "config.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **changes}))


def drop_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


def drop_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def cut_weights(folder: Path) -> None:
    place = folder / "model.safetensors"
    place.write_bytes(place.read_bytes()[:5000])


def cut_embedding(folder: Path) -> None:
    """Whose tokenizer is that of a larger one."""
    spoil_config(folder, vocab_size=100, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    weights = load_file(folder / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = weights[name][:100].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (drop_tokenizer, "holds no tokenizer"),
        (drop_a_weight, "lack model.layers.1.mlp.up_proj.weight"),
        (cut_weights, "cannot be loaded"),
        (lambda folder: spoil_config(folder, intermediate_size=32), "are not those of its config.json (model.layers.0"),
        (lambda folder: spoil_config(folder, model_type="martian"), "cannot be loaded (The checkpoint"),
        (
            lambda folder: spoil_config(folder, model_type="gpt2", n_layer=1, n_embd=24, n_head=2),
            "GPT2LMHeadModel has no decoder.layers; models built like Llama or Qwen3 have",
        ),
        (cut_embedding, "rows.jsonl:2: the tokenizer does not fit the target: it makes token 119 of this row"),
    ],
)
def test_a_target_whose_files_do_not_fit_together(tmp_path, random_folder, capfd, spoil, words):
    folder = tmp_path / "target"
    shutil.copytree(random_folder, folder)
    spoil(folder)
    rows = write_rows(tmp_path / "rows.jsonl", [*ROWS[:1], {"prompt": "Aw", "response": "CDE"}])
    told = {"target": str(folder), "target_layer_ids": [1, 3], "data": {"path": str(rows)}, "mask_token_id": 99}
    assert run(checked(tmp_path / "run", **told)) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err
    assert [(r["event"], r["reason"], r["exit_code"]) for r in records(tmp_path / "run")] == [("end", "error", 2)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_layer_ids": [1, 9]}, "target_layer_ids: 9 is no layer of the target: its layers are 0 to "),
        ({"mask_token_id": 272}, "mask_token_id: 272 is no row of the embedding: its rows are 0 to 271"),
        ({"block_size": 8}, "block_size: the run's checkpoint has 4 and the config says 8"),
        ({"batch_tokens": 20}, "batch_tokens: 20 does not hold the longest sequence (31 tokens)"),
        ({"data": {"path": "/nowhere.jsonl"}}, "data.path: /nowhere.jsonl cannot be read"),
        ({"init_from": TINY}, f"{TINY}: config.json is not a DFlash drafter's ('dflash_config' is missing)"),
        ({"device": "cuda"}, "device: process 0 computes on GPU 0, and torch sees 0 GPUs"),
    ],
)
def test_a_config_that_does_not_fit_leaves_the_run_as_it_was(
    tmp_path, rows, random_folder, begun, capfd, monkeypatch, changes, words
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    shutil.copytree(begun, tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run" / "checkpoints").rglob("*") if p.is_file()}
    told = {"target": str(random_folder), "target_layer_ids": [1, 3], "data": {"path": str(rows)}, "total_steps": 4}
    assert run(checked(tmp_path / "run", **{**told, **changes})) == 2
    _, err = capfd.readouterr()
    assert err.count("\n") == 1 and words in err
    assert [(r["reason"], r["exit_code"]) for r in events(tmp_path / "run", "end")] == [("completed", 0), ("error", 2)]
    assert {p: p.read_bytes() for p in (tmp_path / "run" / "checkpoints").rglob("*") if p.is_file()} == before


def test_a_block_longer_than_every_response(tmp_path, rows, random_folder, capfd):
    told = {"target": str(random_folder), "target_layer_ids": [1, 3], "data": {"path": str(rows)}, "total_steps": 1}
    assert run(checked(tmp_path / "long", block_size=30, **told)) == 2
    assert "block_size: 30 is more than the 29 tokens of the longest response" in capfd.readouterr().err
    assert run(checked(tmp_path / "fits", block_size=29, **told)) == 0


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", ROWS)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, rows, random_folder) -> Path:
    """A run of two steps, whose steps another attempt goes on from."""
    run_dir = tmp_path_factory.mktemp("begun") / "run"
    told = {"target": str(random_folder), "target_layer_ids": [1, 3], "data": {"path": str(rows)}, "total_steps": 2}
    assert run(checked(run_dir, **told)) == 0
    return run_dir

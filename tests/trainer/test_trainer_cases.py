"""Public failure cases, each as a whole run or step has it; the smaller ones stand beside what they are about."""

import json
import os
import signal

import pytest
import torch

from trainer import checkpoint
from trainer.batches import Batch, collate
from trainer.blocks import eligible, every_anchor
from trainer.config import nest
from trainer.data import answered
from trainer.engine import Engine
from trainer.loss import Scoring
from trainer.model import Drafter
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.records import Window
from trainer.run import run
from trainer.step import Objective
from trainer.train import Run
from trainer.zlab import draft_config, draft_shape

from .programs import empty_rank
from .trainer_setup import by_two, case, checked, events, write_rows


def test_86_rows_without_a_target_teach_nothing_and_the_share_of_supervised_tokens_is_told(tmp_path, tiny):
    want = case("case86_mask_batches.expected.json")
    mask = torch.tensor(want["mask"], dtype=torch.bool)
    tokens = torch.arange(mask.numel()).view(mask.shape)
    assert int((~eligible(mask).any(1)).sum()) == want["rows_without_target"]

    def stepped(tokens, mask):
        drafter = Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(0))
        config = checked(tmp_path)
        engine = Engine(Objective(tiny, drafter, 4, Scoring(4.0)), Optimizer(drafter, config), Ranks(), config)
        batch = Batch(tokens, mask, torch.full((len(mask),), mask.shape[1]))
        return engine.step(iter([(0, batch)]), 1e-3, 0.0), drafter

    step, _ = stepped(tokens, mask)
    window = Window(4, torch.device("cpu"))
    window.add(step)
    assert step.made_of["response"] == want["supervised_tokens"]
    assert window.fields(1.0, sparse=False)["supervised_share"] == pytest.approx(want["supervised_share"], rel=1e-4)
    alone, _ = stepped(tokens[1:2], mask[1:2])
    assert step.loss == pytest.approx(alone.loss, rel=1e-6) and step.stepped

    empty, drafter = stepped(tokens, torch.zeros_like(mask))
    untouched = Drafter(drafter.shape, torch.Generator().manual_seed(0))
    assert empty.loss is None and not empty.stepped
    assert all(torch.equal(a, b) for a, b in zip(drafter.parameters(), untouched.parameters(), strict=True))

    every, _ = stepped(tokens, torch.ones_like(mask))
    assert every.made_of["response"] == every.made_of["tokens"] == mask.numel()


def test_91_the_learning_rate_of_a_resumed_run_is_that_of_one_that_never_stopped(tmp_path, random_folder, monkeypatch):
    want = case("case91_lr_resume.expected.json")
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "rst"}])
    config = checked(
        tmp_path / "run",
        target=str(random_folder),
        data={"path": str(place)},
        num_draft_layers=1,
        block_size=2,
        num_anchors=1,
        lr=want["peak"],
        total_steps=want["total_steps"],
        warmup_ratio=want["warmup_steps"] / want["total_steps"],
        log_every=want["total_steps"],
        save_every=want["total_steps"],
    )
    taken, of_groups = [], []
    step, take_step = Engine.step, Run.take_step

    def listening(self, batches, lr, noise_std):
        taken.append(lr)
        done = step(self, batches, lr, noise_std)
        of_groups.append({group["lr"] for part, _ in self._optimizer._parts for group in part.param_groups})
        return done

    def take_step_and_signal(self):
        take_step(self)
        if len(taken) == want["resume_at"]:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Engine, "step", listening)
    monkeypatch.setattr(Run, "take_step", take_step_and_signal)
    assert run(config) == 75
    assert len(taken) == want["resume_at"]
    assert run(config) == 0
    assert len(taken) == want["total_steps"]
    assert of_groups == [{lr} for lr in taken]
    for number, lr in want["lr_for_optimizer_step_0_based"].items():
        if int(number) < want["total_steps"]:
            assert taken[int(number)] == pytest.approx(lr, rel=1e-12, abs=1e-18)


def test_96_short_and_odd_lengths_come_in_one_batch(tmp_path):
    """Responses of 1, block, block + 1, 2 block - 1 and so many tokens that the sequence is the longest allowed."""
    block, longest = 4, 48
    lengths = [1, block, block + 1, 2 * block - 1, longest - 1]
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "r" * n} for n in lengths])
    changes = {"block_size": block, "num_buckets": 1, "batch_tokens": 5 * longest, "total_steps": None, "epochs": 3}
    config = checked(tmp_path / "run", data={"path": str(place), "max_seq_len": longest}, **changes)
    assert run(config) == 0
    steps = events(tmp_path / "run", "train")
    assert [r["avg_batch_size"] for r in steps] == [4.0] * 3
    assert all(isinstance(r["loss"], float) and r["grad_norm"] > 0 for r in steps)
    said = [r["reason"] for r in events(tmp_path / "run", "warn")]
    assert "rows left out: 1 (response of fewer than two tokens)" in said


def test_99_an_export_is_read_back_and_says_the_same_to_the_last_bit(tmp_path, tiny):
    want = case("case99_export_contract.expected.json")
    drafter = Drafter(draft_shape(tiny, (None, 5)), torch.Generator().manual_seed(1))
    told = draft_config(tiny, drafter.shape, 4)
    place = checkpoint.write(tmp_path, checkpoint.Saved(1, drafter, told, {}), 1)
    written = json.loads((place / "config.json").read_text())
    assert set(want["config.json"]["dflash_config"]) <= set(written["dflash_config"])
    # What is stated: the anchor is known and predicts nothing; the vocabulary is the target's, whole; the dtype.
    assert written["dflash_config"]["sample_from_anchor"] is False
    assert (written["vocab_size"], written["dtype"]) == (272, "float32")
    assert "draft_vocab_size" not in written
    found, _ = checkpoint.find(tmp_path, told)
    assert found is not None
    again = Drafter(drafter.shape)
    again.load_state_dict(found.weights())
    batch = collate([answered(list(range(20)), 3), answered(list(range(9)), 2)], torch.device("cpu"))
    logits = []
    for one in (drafter, again):
        states = []
        hook = one.norm.register_forward_hook(lambda _norm, _inputs, out, states=states: states.append(out))
        objective = Objective(tiny, one, 4, Scoring(4.0))
        objective.loss(batch, objective.features(batch)[0], every_anchor(batch.response, 2))
        hook.remove()
        logits.append(tiny.logits(states[0]))
    assert float((logits[0] - logits[1]).detach().abs().max()) == 0.0


def test_100_two_processes_of_which_one_has_nothing_to_learn_from(tmp_path):
    """Five steps whose second batch, which is the second process's, has no response at all."""
    out = tmp_path / "told.json"
    by_two("tests.trainer.programs.empty_rank", str(out))
    told = json.loads(out.read_text())
    assert len(told) == 5 and all(stepped for _, _, stepped in told)
    for two, one in zip(told, empty_rank.steps(Ranks()), strict=True):
        assert two == pytest.approx(one, abs=1e-4)


def test_100_a_process_without_any_batch_still_makes_one_row_a_step(tmp_path):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "r" * n} for n in range(9, 30)])
    losses = []
    for count in (1, 2):
        run_dir = tmp_path / str(count)
        run_dir.mkdir()
        changes = {"data": {"path": str(place)}, "batch_tokens": 64, "micro_batches": 1, "total_steps": 5}
        config = checked(run_dir, **changes, processes=count)
        if count == 1:
            assert run(config) == 0
        else:
            (run_dir / "config.json").write_text(json.dumps(nest(config)))
            by_two("trainer", str(run_dir / "config.json"))
        losses.append([(r["step"], r["loss"]) for r in events(run_dir, "train")])
    one, two = losses
    assert [step for step, _ in two] == [1, 2, 3, 4, 5]
    assert [loss for _, loss in two] == pytest.approx([loss for _, loss in one], abs=1e-4)
    assert "micro_batches: 1 leaves 1 processes idle" in [r["reason"] for r in events(tmp_path / "2", "warn")]

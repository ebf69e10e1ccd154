"""Muon on the matrices, AdamW on the rest: who steps how far, what is logged, and that a stop changes nothing."""

import pytest
import torch
from safetensors.torch import load_file

from trainer.errors import ConfigError
from trainer.model import Drafter
from trainer.optimizer import Optimizer
from trainer.run import run
from trainer.zlab import draft_shape

from .test_trainer_run import losses, signalled
from .trainer_setup import ROOT, checked, events, write_rows


def stepped(tiny, config, lr: float) -> tuple[list, Drafter]:
    """The drafter's parameters before one step with the gradients of a seed, and the drafter after it."""
    drafter = Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(0))
    before = [p.detach().clone() for p in drafter.parameters()]
    rng = torch.Generator().manual_seed(1)
    for p in drafter.parameters():
        p.grad = torch.randn(p.shape, generator=rng)
    Optimizer(drafter, config).step(lr)
    return before, drafter


def test_matrices_step_by_muon_and_the_rest_by_adamw(tmp_path, tiny):
    config = checked(tmp_path, optimizer="muon", lr=1e-3, lr_muon=0.02, weight_decay=0.1)
    before, drafter = stepped(tiny, config, 5e-4)
    for (name, after), old in zip(drafter.named_parameters(), before, strict=True):
        moved = after.detach() - old
        if after.ndim == 1:
            # AdamW's first step is its rate in every place, and norms do not decay.
            torch.testing.assert_close(moved.abs(), torch.full_like(moved, 5e-4), rtol=1e-3, atol=0)
        else:
            # Muon's is an orthogonal matrix times its rate, half of the peak here, beside the decay.
            moved += 0.01 * 0.1 * old
            values = torch.linalg.svdvals(moved) / (0.01 * max(1.0, after.shape[0] / after.shape[1]) ** 0.5)
            assert float(values.min()) > 0.6 and float(values.max()) < 1.3, name


def test_adamw_alone_steps_everything(tmp_path, tiny):
    before, drafter = stepped(tiny, checked(tmp_path, lr=1e-3), 5e-4)
    for after, old in zip(drafter.parameters(), before, strict=True):
        torch.testing.assert_close((after.detach() - old).abs(), torch.full_like(old, 5e-4), rtol=0.1, atol=0)


@pytest.mark.parametrize(("lr_muon", "rate"), [("auto", 5e-3), (0.02, 1e-2)])
def test_both_rates_follow_one_schedule(tmp_path, tiny, lr_muon, rate):
    drafter = Drafter(draft_shape(tiny, (None,)))
    optimizer = Optimizer(drafter, checked(tmp_path, optimizer="muon", lr=1e-3, lr_muon=lr_muon))
    assert optimizer.rates(5e-4) == {"lr": 5e-4, "lr_muon": pytest.approx(rate)}
    assert Optimizer(drafter, checked(tmp_path, lr=1e-3)).rates(5e-4) == {"lr": 5e-4}


def settings(tmp_path, name: str, **changes):
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    rows = [{"prompt": text[i : i + 9], "response": text[i + 9 : i + 30 + i % 17]} for i in range(0, 600, 31)]
    place = write_rows(tmp_path / "rows.jsonl", rows)
    muon = {"optimizer": "muon", "lr": 2e-3, "lr_muon": 0.01, "total_steps": 8, "warmup_ratio": 0.25}
    return checked(tmp_path / name, data={"path": str(place)}, batch_tokens=256, **{**muon, **changes})


def test_a_run_with_muon_learns_is_logged_and_goes_on_bit_for_bit(tmp_path):
    assert run(settings(tmp_path, "whole")) == 0
    with signalled(3):
        assert run(settings(tmp_path, "cut")) == 75
    assert run(settings(tmp_path, "cut")) == 0
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    weights = [load_file(tmp_path / name / "checkpoints" / "step-8" / "model.safetensors") for name in ("cut", "whole")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    steps = events(tmp_path / "whole", "train")
    for r in steps:
        assert r["lr_muon"] == pytest.approx(5 * r["lr"], rel=1e-4)
    assert max(r["lr_muon"] for r in steps) == 0.01
    assert steps[-1]["loss"] < steps[0]["loss"] - 1


def test_a_resume_with_another_optimizer_is_refused(tmp_path, capsys):
    assert run(settings(tmp_path, "run", total_steps=2)) == 0
    assert run(settings(tmp_path, "run", total_steps=3, optimizer="adamw")) == 2
    assert "optimizer: the run's checkpoint has muon and the config says adamw" in capsys.readouterr().err


def test_a_torch_without_muon_is_named(tmp_path, tiny, monkeypatch):
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(ConfigError, match=r"optimizer: muon needs torch 2\.9"):
        Optimizer(Drafter(draft_shape(tiny, (None,))), checked(tmp_path, optimizer="muon"))


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_what_a_resume_is_told_holds_and_what_was_learnt_stays(tmp_path, tiny, kind):
    """The log says that weight_decay and adam_beta2 are others now; so they must be."""

    def made(**changes) -> Optimizer:
        drafter = Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(0))
        for parameter in drafter.parameters():
            parameter.grad = torch.ones_like(parameter)
        return Optimizer(drafter, checked(tmp_path, optimizer=kind, weight_decay=0.1, adam_beta2=0.9, **changes))

    first = made()
    first.step(1e-3)
    again = Optimizer(
        Drafter(draft_shape(tiny, (None, None))),
        checked(tmp_path, optimizer=kind, weight_decay=0.5, adam_beta2=0.5, lr_muon=0.02),
    )
    again.load(first.state())
    groups = [group for part, _ in again._parts for group in part.param_groups]
    assert max(group["weight_decay"] for group in groups) == 0.5
    assert {group["betas"] for group in groups if "betas" in group} == {(0.9, 0.5)}
    moments = [[p["state"] for p in optimizer.state()] for optimizer in (first, again)]
    torch.testing.assert_close(*moments, rtol=0, atol=0)

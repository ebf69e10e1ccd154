"""Where the target lies: its layers on devices of their own, or not loaded at all where features are on disk."""

import json

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trainer import target as target_module
from trainer.decode import greedy
from trainer.errors import ConfigError
from trainer.launcher import num_processes
from trainer.run import run
from trainer.target import Target

from .test_trainer_capture import losses, rows, settings  # noqa: F401  (a fixture)
from .trainer_setup import checked, events, write_rows

FAR = torch.device("meta")


def test_layers_apart_say_what_they_say_together(tmp_path, random_folder, monkeypatch):
    config = checked(tmp_path, target=str(random_folder), target_layer_ids=[1, 3])
    together = Target(config)
    monkeypatch.setattr("trainer.target.layer_devices", lambda *_: [torch.device("cpu")] * 2)
    apart = Target(config)
    tokens = torch.arange(30)[None]
    told = [target.features(tokens, final=True) for target in (together, apart)]
    assert torch.equal(told[0].taps, told[1].taps) and torch.equal(told[0].final, told[1].final)
    prompts = [list(b"def f("), list(b"x")]
    written = [[d.tokens for d in greedy(target, prompts, [9, 14])] for target in (together, apart)]
    assert written[0] == written[1]


class OneDevice(TorchDispatchMode):
    """Refuses what a GPU would: an operation over tensors of two devices."""

    ACROSS = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        found = {t.device for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.dim()}
        assert len(found) < 2 or func in self.ACROSS, f"{func} over {found}"
        return func(*args, **(kwargs or {}))


def test_nothing_meets_on_two_devices(tmp_path, random_folder, monkeypatch):
    """Layers on a device that computes shapes alone, where the ones between are not; what comes back are zeros."""
    to = torch.Tensor.to

    def back(self, device=None, *rest, **options):
        if self.device == FAR and device == torch.device("cpu"):
            return torch.zeros(self.shape, dtype=self.dtype)
        return to(self, device, *rest, **options)

    monkeypatch.setattr(torch.Tensor, "to", back)
    monkeypatch.setattr("trainer.target.layer_devices", lambda *_: [FAR, torch.device("cpu"), FAR])
    target = Target(checked(tmp_path, target=str(random_folder), target_layer_ids=[1, 3]))
    assert {layer.mlp.up_proj.weight.device.type for layer in target.model.model.layers} == {"meta", "cpu"}
    with OneDevice():
        features = target.features(torch.arange(30)[None], final=True)
        assert [len(d.tokens) >= 4 for d in greedy(target, [list(b"def f("), list(b"x")], [4, 9])] == [True, True]
    assert (features.taps.device.type, features.final.device.type) == ("cpu", "cpu")


def test_gpus_that_cannot_be_had_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    config = checked(tmp_path, target_gpus=[1, 2])
    assert num_processes(config) == 1
    with pytest.raises(ConfigError, match="target_gpus: 2 is no GPU of this machine: torch sees 2, counted from 0"):
        Target(config)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="target_gpus: is for one process, and this run has 2; set processes = 1"):
        Target(checked(tmp_path, target_gpus=[1]))


def test_features_on_disk_need_no_layer_until_somebody_evaluates(tmp_path, rows, random_folder, monkeypatch):  # noqa: F811
    """Whose loading is counted: the drafter borrows embedding, norm and head from the first."""
    loads, load = [], target_module.load_model

    def counting(path, dtype, *, with_layers=True):
        loads.append(with_layers)
        return load(path, dtype, with_layers=with_layers)

    held_out = {"prompt": "def f", "split": "eval", "max_new_tokens": 9}
    told = [*map(json.loads, rows.read_text().splitlines()), held_out]
    place = write_rows(tmp_path / "rows.jsonl", told)
    kept = tmp_path / "capture"
    assert run(settings(kept, place, random_folder, kind="capture", teacher="final_hidden")) == 0
    changes = {"teacher": "final_hidden", "data": {"path": str(kept / "sequences")}}
    assert run(settings(tmp_path / "online", place, random_folder, **changes)) == 0
    monkeypatch.setattr("trainer.target.load_model", counting)
    changes["features"] = {"path": str(kept / "features")}
    assert run(settings(tmp_path / "offline", place, random_folder, **changes)) == 0
    assert loads == [False, True]
    loads.clear()
    changes["data"] = {**changes["data"], "num_eval": 0}
    assert run(settings(tmp_path / "blind", place, random_folder, **changes)) == 0
    assert loads == [False]
    loads.clear()
    monkeypatch.undo()
    want = pytest.approx(losses(tmp_path / "online"), rel=1e-4)
    assert losses(tmp_path / "offline") == losses(tmp_path / "blind") == want
    evals = [events(tmp_path / name, "eval") for name in ("online", "offline")]
    assert [r["lossless"] for r in evals[1]] == [1.0, 1.0]
    assert [r["tau_linear_macro"] for r in evals[1]] == [r["tau_linear_macro"] for r in evals[0]]
